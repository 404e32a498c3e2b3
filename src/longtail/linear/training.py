"""Train the classifiers of one level: cluster by cluster, sixteen children at a time.

    fit_layer    features (n_texts, n_features), members (n_texts, n_children)  ->  Layer
    train_shard  ShardSpec: some neighbouring children of a level               ->  their chunks

For every cluster the texts that train it are copied with their own feature numbers, so that weights fit
in the processor's caches; the solver then treats sixteen children at once (`kernels.native.lanes`).
Children are independent and seeded by their place in the level: the result does not depend on how a level is cut into
shards, nor on where these are trained.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from longtail.kernels.native.blocks import fill_targets, prune, texts_of_clusters
from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.solver import solve_logistic, solve_squared_hinge
from longtail.kernels.rows import LocalRows, Rows, SharedRows, gather
from longtail.labels.index import Level
from longtail.linear.chunks import ChildWeights, check_widths, chunk_of, join_chunks, layer_of
from longtail.linear.growing import GrowingArrays
from longtail.linear.layer import Layer
from longtail.mapped_arrays import Arrays
from longtail.options import Options
from longtail.run.engine import SharedArrays
from longtail.run.progress import Advance
from longtail.run.run import Run
from longtail.types import LabelMatrix

_SOLVERS = {"squared_hinge": solve_squared_hinge, "logistic": solve_logistic}
_NEVER = -100.0
"""Margin with a child that no text has: what it learned from negatives alone would be better than most children's."""
STAGE_WORK = 1 << 34
"""Non-zeros times lanes that are trained before they are kept: half a minute or so, what a kill may cost."""
_SHARDS_PER_THREAD = 16
"""Shards of a stage: enough that no thread waits long for the last one, few enough that each is worth a task."""


class SolverOptions(Options):
    """The one-vs-rest solver: dual coordinate descent on an L2-regularised loss."""

    loss: Literal["squared_hinge", "logistic"] = "squared_hinge"
    """Squared hinge is better by P@k on TF-IDF; logistic gives probabilities."""
    cost_positive: PositiveFloat = 1.0
    """Cost C of positive examples."""
    cost_negative: PositiveFloat = 1.0
    """Cost C of negative examples."""
    cost_decay: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = 0.0
    """Both costs of a label with n texts are divided by n to this power: frequent labels need less pull. `auto` is
    0.9 · t^−0.4 for texts of t terms: 0.1 for long texts, 0.33 for titles."""
    count_costs: bool = False
    """Clusters: a text counts as often as it has labels in the cluster (cost-sensitive, as XR-Transformer)."""
    bias: float = Field(1.0, ge=0)
    """Value of a constant feature; 0 for none."""
    tolerance: PositiveFloat = 0.1
    """Stop when the gradients of a pass span at most this."""
    max_passes: PositiveInt = 15
    """Passes over the texts, at most."""
    threshold: float = Field(0.1, ge=0)
    """Weights smaller than this are dropped after training."""

    def for_share(self, share: float) -> Self:
        """Return options with which a share of the texts gives margins as large as those of all texts.

        Each label has fewer texts to pull at its weights, so costs are divided by the root of the share (measured in
        docs/calibration.md).
        """
        costs = {name: getattr(self, name) / math.sqrt(share) for name in ("cost_positive", "cost_negative")}
        return self.model_copy(update=costs)


@dataclass(frozen=True, eq=False)
class Examples:
    """What a level is trained on: the children of each text, and the texts that train each cluster."""

    members: LabelMatrix  # (n_texts, n_children)
    counts: NDArray[np.int8]  # (n_assignments,) how often each counts
    text_ptr: NDArray[np.int64]  # (n_clusters + 1,)
    texts: NDArray[np.int32]  # (text_ptr[-1],), or (n_texts,) where all texts train all clusters

    @classmethod
    def of(
        cls,
        members: LabelMatrix,
        level: Level,
        *,
        recalled: NDArray[np.int32] | None = None,
        everyone: bool = False,
        counts: NDArray[Any] | None = None,
    ) -> Examples:
        """Return the examples of a level.

        A cluster is trained by the texts that have one of its children (`members`), by those whose `recalled` clusters
        (n_texts, b) it is among, or by all texts if `everyone`. `counts` say how often each member counts.
        """
        n = members.n_texts
        counts = np.ones(len(members.indices), np.int8) if counts is None else np.minimum(counts, 127).astype(np.int8)
        if everyone:
            text_ptr = np.arange(level.n_parents + 1, dtype=np.int64) * n
            return cls(members, counts, text_ptr, np.arange(n, dtype=np.int32))
        clusters = members.renumber(level.parent_of_child(), level.n_parents)
        recalled = np.empty((n, 0), np.int32) if recalled is None else recalled
        text_ptr = np.zeros(level.n_parents + 1, np.int64)
        texts = np.empty(0, np.int32)
        texts_of_clusters(clusters.indptr, clusters.indices, recalled, level.n_parents, text_ptr, texts)
        texts = np.empty(text_ptr[-1], np.int32)
        texts_of_clusters(clusters.indptr, clusters.indices, recalled, level.n_parents, text_ptr, texts)
        return cls(members, counts, text_ptr, texts)

    def of_cluster(self, cluster: int) -> NDArray[np.int32]:
        """Return the texts that train a cluster."""
        if len(self.texts) < self.text_ptr[-1]:
            return self.texts  # all of them train all clusters, and are listed once
        return self.texts[self.text_ptr[cluster] : self.text_ptr[cluster + 1]]


@dataclass(frozen=True)
class ShardSpec:
    """What `train_shard` trains; small, whatever the size of the data."""

    features: SharedRows
    problem: SharedArrays
    """Arrays of the `_Problem` of the level."""
    options: SolverOptions
    seed: int
    clusters: range
    """Neighbouring clusters."""
    children: range
    """Their children, by place in the level. A single cluster may lack some at either end, a multiple of `LANES`."""


def train_shard(spec: ShardSpec) -> dict[str, NDArray[Any]]:
    """Return the chunks of the clusters of a shard, one after the other."""
    features = spec.features.open()
    problem = _Problem.from_arrays(spec.problem.open())
    chunks = GrowingArrays()
    for number, cluster in enumerate(spec.clusters, 1):
        all_children = problem.children(range(cluster, cluster + 1))
        first, stop = max(all_children.start, spec.children.start), min(all_children.stop, spec.children.stop)
        weights = _train_children(features, problem, range(first, stop), cluster, spec)
        chunks.append(chunk_of(weights), number / len(spec.clusters))
    return chunks.arrays()


def fit_layer(
    features: Rows,
    level: Level,
    examples: Examples,
    options: SolverOptions,
    *,
    seed: int = 0,
    run: Run | None = None,
    name: str = "weights",
    stage_work: int = STAGE_WORK,
) -> Layer:
    """Train all classifiers of a level; about `stage_work` non-zeros times lanes are trained, then kept as a stage."""
    check_widths(level)
    run = run or Run()
    terms_per_text = len(features.indices) / max(len(features), 1)
    problem = _Problem.of(level, examples, _cost_decay(options, terms_per_text))
    whole = ShardSpec(
        features=features.share(run.engine, "features"),
        problem=run.engine.share("problem", problem.arrays()),
        options=options,
        seed=seed,
        clusters=range(level.n_parents),
        children=range(level.n_children),
    )
    n_blocks = -(-np.diff(level.child_ptr) // LANES)
    work = np.diff(examples.text_ptr) * n_blocks * terms_per_text * LANES  # (n_clusters,)
    chunks = GrowingArrays()
    with run.progress.step(name, level.n_children, "labels") as advance:
        for number, clusters in enumerate(_cut(work, stage_work)):
            stage = replace(whole, clusters=clusters, children=problem.children(clusters))
            shards = list(_shards(stage, problem, work, run.engine.n_threads))
            build = partial(_train_stage, shards, problem, run, advance)
            arrays, fresh = run.stages.arrays(f"{name.replace(' ', '-')}-{number}", build)
            chunks.append(arrays, clusters.stop / level.n_parents)
            if not fresh:
                advance(len(stage.children))
    return layer_of(level, chunks.arrays())


@dataclass(frozen=True, eq=False)
class _Problem:
    """What the shards of a level have in common beside the features."""

    examples: Examples
    child_ptr: NDArray[np.int64]  # (n_clusters + 1,)
    position: NDArray[np.int64]  # (n_children,) place of each child in the level
    cost_factor: NDArray[np.float32]  # (n_children,) by place, like `absent`
    absent: NDArray[np.bool_]  # (n_children,) whether no text has the child

    @classmethod
    def of(cls, level: Level, examples: Examples, cost_decay: float) -> _Problem:
        position = np.empty(level.n_children, np.int64)
        position[level.children] = np.arange(level.n_children)
        frequency = examples.members.texts_per_label()[level.children]  # (n_children,) by place
        cost_factor = (np.maximum(frequency, 1) ** -cost_decay).astype(np.float32)
        return cls(examples, level.child_ptr, position, cost_factor, frequency == 0)

    def children(self, clusters: range) -> range:
        """Return the places of the children of neighbouring clusters."""
        return range(int(self.child_ptr[clusters.start]), int(self.child_ptr[clusters.stop]))

    def arrays(self) -> dict[str, NDArray[Any]]:
        members = {"indptr": self.examples.members.indptr, "indices": self.examples.members.indices}
        return {key: array for key, array in (vars(self.examples) | vars(self) | members).items() if key not in _NESTED}

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> _Problem:
        rest = dict(arrays)
        members = LabelMatrix(rest.pop("indptr"), rest.pop("indices"), len(rest["position"]))
        examples = {key: rest.pop(key) for key in ("counts", "text_ptr", "texts")}
        return cls(Examples(members, **examples), **rest)


_NESTED = ("examples", "members")


def _cost_decay(options: SolverOptions, terms_per_text: float) -> float:
    if options.cost_decay == "auto":
        return min(0.5, 0.9 * float(max(terms_per_text, 1.0) ** -0.4))
    return options.cost_decay


def _cut(work: NDArray[Any], limit: float, also_at: Sequence[int] = ()) -> list[range]:
    """Cut clusters into runs of neighbours of about so much work, and at the given places."""
    total = np.cumsum(work)
    cuts = np.searchsorted(total, np.arange(limit, total[-1], limit))
    edges = np.unique(np.concatenate([[0], cuts, also_at, [len(work)]]).astype(np.int64)).tolist()
    return [range(start, stop) for start, stop in pairwise(edges)]


def _shards(stage: ShardSpec, problem: _Problem, work: NDArray[Any], n_threads: int) -> Iterator[ShardSpec]:
    """Cut a stage into shards of about the same work; a larger cluster is a shard of its own, or several."""
    first = stage.clusters.start
    work = work[first : stage.clusters.stop]
    limit = max(1.0, float(work.sum()) / (_SHARDS_PER_THREAD * n_threads))
    large = np.flatnonzero(work > limit)
    for some in _cut(work, limit, [*large, *(large + 1)]):
        clusters = range(first + some.start, first + some.stop)
        children = problem.children(clusters)
        step = max(1, len(children))
        if work[some.start] > limit:
            n_shards, n_blocks = int(np.ceil(work[some.start] / limit)), -(-len(children) // LANES)
            step = -(-n_blocks // n_shards) * LANES
        for start in range(children.start, max(children.stop, children.start + 1), step):
            yield replace(stage, clusters=clusters, children=range(start, min(start + step, children.stop)))


def _train_stage(shards: Sequence[ShardSpec], problem: _Problem, run: Run, advance: Advance) -> Arrays:
    """Return the chunks of all shards, one cluster after the other."""
    whole = GrowingArrays()
    of_cluster: list[Arrays] = []
    first, last = shards[0].clusters.start, shards[-1].clusters.stop
    for shard, chunks in zip(shards, run.engine.map(train_shard, shards), strict=True):
        advance(len(shard.children))
        of_cluster.append(chunks)
        if shard.children.stop == problem.children(shard.clusters).stop:
            whole.append(join_chunks(of_cluster), (shard.clusters.stop - first) / (last - first))
            of_cluster = []
    return whole.arrays()


def _train_children(features: Rows, problem: _Problem, children: range, cluster: int, spec: ShardSpec) -> ChildWeights:
    """Train some neighbouring children of one cluster, `LANES` at a time."""
    texts = problem.examples.of_cluster(cluster)
    if len(texts) == len(features):
        local, order = features.all_local(), np.arange(features.n_columns, dtype=np.int32)
    else:
        local = gather(features, texts)
        order = np.argsort(local.features, kind="stable").astype(np.int32)
    blocks = [
        _solve_block(local, texts, order, range(start, min(start + LANES, children.stop)), problem, spec)
        for start in range(children.start, children.stop, LANES)
    ]
    places = [block.child + np.uint16(LANES * number) for number, block in enumerate(blocks)]
    return ChildWeights(
        feature=np.concatenate([np.empty(0, np.int32), *(block.feature for block in blocks)]),
        child=np.concatenate([np.empty(0, np.uint16), *places]),
        weight=np.concatenate([np.empty(0, np.float32), *(block.weight for block in blocks)]),
        bias=np.concatenate([np.empty(0, np.float32), *(block.bias for block in blocks)]),
    )


def _solve_block(
    local: LocalRows,
    texts: NDArray[np.int32],
    order: NDArray[np.int32],
    block: range,
    problem: _Problem,
    spec: ShardSpec,
) -> ChildWeights:
    """Train up to `LANES` children; features are visited in `order`."""
    options, examples = spec.options, problem.examples
    n_lanes, absent = len(block), problem.absent[block.start : block.stop]
    targets = np.empty((len(texts), LANES), np.int8)
    fill_targets(
        texts, examples.members.indptr, examples.members.indices, examples.counts, problem.position,
        block.start, block.stop, targets,
    )  # fmt: skip
    factor = np.ones(LANES, np.float32)
    factor[:n_lanes] = problem.cost_factor[block.start : block.stop]
    weights = np.zeros((len(local.features) + 1, LANES), np.float32)
    _SOLVERS[options.loss](
        local.indptr, local.indices, local.values, targets, np.ones(len(texts), np.float32),
        factor * np.float32(options.cost_positive), factor * np.float32(options.cost_negative),
        np.float32(options.bias), np.float32(options.tolerance), options.max_passes,
        np.uint64(spec.seed * 1_000_003 + block.start), weights,
    )  # fmt: skip
    weights[:, :n_lanes][:, absent] = 0
    threshold = np.float32(max(options.threshold, 1e-30))
    n = 0
    for _ in range(2):  # count the weights that stay, then write them
        rows, lanes, values = np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.float32)
        n = prune(weights, order, n_lanes, threshold, rows, lanes, values)
    bias = weights[-1, :n_lanes] * np.float32(options.bias)
    return ChildWeights(local.features[order[rows]], lanes, values, np.where(absent, np.float32(_NEVER), bias))
