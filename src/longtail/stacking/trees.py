"""Boosted trees that rank candidates: trained by LightGBM, kept as plain arrays, summed by a kernel of ours."""

from __future__ import annotations

from collections.abc import Iterator
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
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.structure import Structure

_ROWS_AT_ONCE = 1 << 14


class TreesOptions(Options):
    """Boosted trees (`pip install 'longtail[stack]'`)."""

    kind: Literal["trees"] = "trees"
    objective: Literal["binary", "lambdarank"] = "binary"
    """Whether each candidate is right, or LambdaMART's gradient of nDCG."""
    n_trees: PositiveInt = 200
    """Number of trees."""
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
        lightgbm = _lightgbm()
        settings = {
            "objective": options.objective,
            "num_leaves": options.n_leaves,
            "learning_rate": options.rate,
            "min_data_in_leaf": options.min_leaf,
            "lambda_l2": options.l2,
            "lambdarank_truncation_level": 10,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": run.engine.n_threads,
            "seed": seed,
            "verbosity": -1,
        }
        groups = examples.per_text if options.objective == "lambdarank" else None
        data = lightgbm.Dataset(examples.features, examples.right.astype(np.float32), group=groups)
        with run.progress.step("ranker", options.n_trees, "trees") as advance:
            booster = lightgbm.train(settings, data, options.n_trees, callbacks=[lambda _: advance(1)])
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

    def scores(self, features: NDArray[np.float32], run: Run) -> NDArray[np.float32]:
        """Return the log odds of each candidate, (n_candidates,)."""
        starts = range(0, len(features), _ROWS_AT_ONCE)
        blocks = (features[start : start + _ROWS_AT_ONCE] for start in starts)
        return np.concatenate([np.empty(0, np.float32), *run.engine.map(partial(_sum_of, self), blocks)])

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


def _sum_of(trees: Trees, features: NDArray[np.float32]) -> NDArray[np.float32]:
    totals = np.empty(len(features), np.float64)
    sum_of_trees(features, trees.roots, trees.feature, trees.threshold, trees.left, trees.right, trees.value, totals)
    return totals.astype(np.float32)


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
        import lightgbm
    except (ImportError, OSError) as error:  # OSError: a system without OpenMP's library
        raise MissingExtraError(
            f"ranker 'trees' needs lightgbm, which cannot be imported here ({error}); install with "
            "pip install 'longtail[stack]', or use ranker.kind=logistic"
        ) from error
    return lightgbm
