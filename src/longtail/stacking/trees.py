"""Boosted trees that rank candidates: trained by LightGBM, kept as plain arrays, summed by a kernel of ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from longtail.errors import MissingExtraError
from longtail.kernels.native.trees import sum_of_trees
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.structure import Structure

_ROWS_AT_ONCE = 1 << 14
_WAITING = "OMP_WAIT_POLICY"
"""The variable that OpenMP reads once, when it is loaded."""
_TRUNCATION = 8
"""How many of the best candidates LambdaMART compares with all others."""


class TreesOptions(Options):
    """Boosted trees (`pip install 'longtail[stack]'`)."""

    kind: Literal["trees"] = "trees"
    objective: Literal["binary", "lambdarank", "both"] = "both"
    """`binary`: whether each candidate is right; `lambdarank`: LambdaMART's gradient of nDCG; `both`: the mean of the
    two, each divided by its spread."""
    n_trees: PositiveInt = 100
    """Number of trees, for each of `both` objectives."""
    n_leaves: PositiveInt = 31
    """Leaves of each tree, at most."""
    rate: PositiveFloat = 0.06
    """How much each tree counts."""
    min_leaf: PositiveInt = 50
    """Candidates in a leaf, at least."""
    l2: float = Field(1.0, ge=0)
    """Penalty on the values of leaves."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Trained trees, all nodes in one row; children stand behind their parents."""

    roots: NDArray[np.int32]  # (n_trees,)
    feature: NDArray[np.int32]  # (n_nodes,) −1 in leaves
    threshold: NDArray[np.float64]  # (n_nodes,)
    left: NDArray[np.int32]  # (n_nodes,)
    right: NDArray[np.int32]  # (n_nodes,)
    value: NDArray[np.float64]  # (n_nodes,)

    @classmethod
    def fit(cls, examples: CandidateExamples, options: TreesOptions, *, seed: int, run: Run) -> Trees:
        """Train on the candidates of texts."""
        objectives = ("binary", "lambdarank") if options.objective == "both" else (options.objective,)
        with run.progress.step("ranker", options.n_trees * len(objectives), "trees") as advance:
            settings = [_settings(options, objective, seed, run) for objective in objectives]
            forests = [cls._train(examples, one, options.n_trees, advance) for one in settings]
        if len(forests) == 1:
            return forests[0]
        spreads = [float(forest.scores(examples.features, run).std()) or 1.0 for forest in forests]
        return cls._sum(forests, [spreads[0] / spread / len(forests) for spread in spreads])

    @classmethod
    def _train(
        cls, examples: CandidateExamples, settings: dict[str, Any], n_trees: int, advance: Callable[[int], None]
    ) -> Trees:
        """Return the trees that LightGBM trains."""
        lightgbm = _lightgbm()
        groups = examples.per_text[examples.per_text > 0]
        data = lightgbm.Dataset(examples.features, examples.right.astype(np.float32), group=groups)
        booster = lightgbm.train(settings, data, n_trees, callbacks=[lambda _: advance(1)])
        nodes = [list(_nodes(tree["tree_structure"])) for tree in booster.dump_model()["tree_info"]]
        starts = np.cumsum([0, *map(len, nodes)])
        shifted = [
            (feature, threshold, left + start, right_child + start, value)
            for start, tree in zip(starts.tolist(), nodes, strict=False)
            for feature, threshold, left, right_child, value in tree
        ]
        columns = zip(*shifted, strict=True)
        kinds = (np.int32, np.float64, np.int32, np.int32, np.float64)
        return cls(starts[:-1].astype(np.int32), *(np.array(c, kind) for c, kind in zip(columns, kinds, strict=True)))

    @classmethod
    def _sum(cls, forests: Sequence[Trees], weights: Sequence[float]) -> Trees:
        """Return the trees of all forests, their values times the forest's weight."""
        starts = np.cumsum([0, *(len(forest.feature) for forest in forests)]).astype(np.int32)
        moved = [
            cls(
                forest.roots + start,
                forest.feature,
                forest.threshold,
                forest.left + start,
                forest.right + start,
                forest.value * weight,
            )
            for forest, start, weight in zip(forests, starts, weights, strict=False)
        ]
        return cls(**{name: np.concatenate([vars(one)[name] for one in moved]) for name in vars(moved[0])})

    def scores(self, features: NDArray[np.float32], run: Run) -> NDArray[np.float32]:
        """Return the log odds of each candidate, (n_candidates,)."""
        if len(features) <= _ROWS_AT_ONCE:
            return self._sum_of(features)
        spec = TreesSpec(run.engine.share("trees", vars(self)), run.engine.share("features", {"features": features}))
        starts = range(0, len(features), _ROWS_AT_ONCE)
        return np.concatenate(list(run.engine.map(partial(sum_of_rows, spec), starts)))

    def _sum_of(self, features: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the sum of the values of all leaves that each candidate falls into."""
        totals = np.empty(len(features), np.float64)
        sum_of_trees(
            features, self.roots, self.feature, self.threshold, self.left, self.right, self.value, totals
        )  # fmt: skip
        return totals.astype(np.float32)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.arrays(name, vars(self))

    @classmethod
    def load(cls, folder: Folder, name: str, n_features: int) -> Trees:
        """Open what `save` wrote; every walk through the nodes ends in a leaf."""
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        feature = stored.numbers("feature", np.int32, below=n_features, least=-1)
        n = len(feature)
        places, inner = np.arange(n), feature >= 0
        left, right = (stored.numbers(child, np.int32, below=max(n, 1), n=n) for child in ("left", "right"))
        for child, places_of in {"left": left, "right": right}.items():
            stored.require(child, bool((places_of > places)[inner].all()), "stand behind their parents")
        return cls(
            stored.numbers("roots", np.int32, below=n),
            feature,
            stored.finite("threshold", np.float64, shape=(n,)),
            left,
            right,
            stored.finite("value", np.float64, shape=(n,)),
        )


def _settings(options: TreesOptions, objective: str, seed: int, run: Run) -> dict[str, Any]:
    """Return LightGBM's settings."""
    return {
        "objective": objective,
        "num_leaves": options.n_leaves,
        "learning_rate": options.rate,
        "min_data_in_leaf": options.min_leaf,
        "lambda_l2": options.l2,
        "lambdarank_truncation_level": _TRUNCATION,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": run.engine.n_local_threads,
        "seed": seed,
        "verbosity": -1,
    }


@dataclass(frozen=True)
class TreesSpec:
    """Trees, and candidates to score."""

    trees: SharedArrays
    """The arrays of `Trees`."""
    features: SharedArrays
    """Their `features`, (n_candidates, n_features)."""


def sum_of_rows(spec: TreesSpec, start: int) -> NDArray[np.float32]:
    """Return the log odds of some candidates, `start` and those that follow."""
    features = spec.features.open()["features"][start : start + _ROWS_AT_ONCE]
    return Trees(**spec.trees.open())._sum_of(features)


def _nodes(node: dict[str, Any], place: int = 0) -> Iterator[tuple[int, float, int, int, float]]:
    """Yield the nodes of a tree as LightGBM describes it: feature, threshold, left, right, value; parents first."""
    if "split_feature" not in node:
        yield -1, 0.0, 0, 0, float(node["leaf_value"])
        return
    left = list(_nodes(node["left_child"], place + 1))
    right_place = place + 1 + len(left)
    yield int(node["split_feature"]), float(node["threshold"]), place + 1, right_place, 0.0
    yield from left
    yield from _nodes(node["right_child"], right_place)


def _lightgbm() -> Any:
    try:
        with _sleeping_threads():
            import lightgbm
    except (ImportError, OSError) as error:  # OSError: a system without OpenMP's library
        raise MissingExtraError(
            f"ranker 'trees' needs lightgbm, which cannot be imported here ({error}); install with "
            "pip install 'longtail[stack]', or use ranker.kind=logistic"
        ) from error
    return lightgbm


@contextmanager
def _sleeping_threads() -> Iterator[None]:
    """Let threads of OpenMP sleep while they wait, if it is loaded meanwhile and nobody has decided otherwise.

    By default they spin. A tree is many short parallel loops, so where cores are shared with other processes, threads
    that spin take the time of the one that everybody waits for.
    """
    decided = _WAITING in os.environ
    os.environ.setdefault(_WAITING, "PASSIVE")
    try:
        yield
    finally:
        if not decided:
            del os.environ[_WAITING]
