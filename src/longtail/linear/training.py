"""Train the classifiers of one level: cluster by cluster, sixteen children at a time.

For every cluster the texts that train it are copied with their own feature numbers, so that weights fit
in the processor's caches; the solver then treats sixteen children at once (`kernels.native.lanes`).
Clusters are independent and seeded by number: the result is the same for any number of threads.

    features (n_texts, n_features), members (n_texts, n_children)  ->  Layer
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat, PositiveInt

from longtail.engines.local import LocalEngine, PerThread
from longtail.kernels.native.blocks import fill_targets, prune, texts_of_clusters
from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.solver import solve_logistic, solve_squared_hinge
from longtail.kernels.rows import LocalRows, Rows, gather
from longtail.labels.index import Level
from longtail.linear.chunks import Piece, check_widths, chunk_of, layer_of
from longtail.linear.growing import GrowingArrays
from longtail.linear.layer import Layer
from longtail.options import Options
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages
from longtail.types import LabelMatrix

_SOLVERS = {"squared_hinge": solve_squared_hinge, "logistic": solve_logistic}
_NEVER = -100.0
"""Margin with a child that no text has: what it learned from negatives alone would be better than most children's."""
_SHARD_WORK = 1 << 34
"""Non-zeros times lanes of one shard: half a minute or so, what a kill may cost."""


class SolverOptions(Options):
    """The one-vs-rest solver: dual coordinate descent on an L2-regularised loss."""

    loss: Literal["squared_hinge", "logistic"] = "squared_hinge"
    """Squared hinge is better by P@k on TF-IDF; logistic gives probabilities."""
    cost_positive: PositiveFloat = 1.0
    """C of a text that has the label."""
    cost_negative: PositiveFloat = 1.0
    """C of a text that has it not."""
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


@dataclass(frozen=True, eq=False)
class Examples:
    """Who trains a level: the children of each text, and which texts train each cluster."""

    members: LabelMatrix  # (n_texts, n_children)
    counts: NDArray[np.int8]  # (n_assignments,) how often each counts
    text_ptr: NDArray[np.int64]  # (n_clusters + 1,)
    texts: NDArray[np.int32]  # (text_ptr[-1],), or (n_texts,) where all texts train all clusters
    text_costs: NDArray[np.float32]  # (n_texts,)

    @classmethod
    def of(
        cls,
        members: LabelMatrix,
        level: Level,
        recalled: NDArray[np.int32] | None = None,
        everyone: bool = False,
        counts: NDArray[Any] | None = None,
        text_costs: NDArray[np.float32] | None = None,
    ) -> Examples:
        """Texts with a positive in the cluster, those that recall brought to it, or all texts."""
        n = members.n_texts
        if text_costs is None:
            text_costs = np.ones(n, np.float32)
        counts = np.ones(len(members.indices), np.int8) if counts is None else np.minimum(counts, 127).astype(np.int8)
        if everyone:
            text_ptr = np.arange(level.n_parents + 1, dtype=np.int64) * n
            return cls(members, counts, text_ptr, np.arange(n, dtype=np.int32), text_costs)
        cluster_of = np.empty(level.n_children, np.int64)
        cluster_of[level.children] = np.repeat(np.arange(level.n_parents), np.diff(level.child_ptr))
        own = members.renumber(cluster_of, level.n_parents)
        recalled = np.empty((n, 0), np.int32) if recalled is None else recalled
        text_ptr = np.zeros(level.n_parents + 1, np.int64)
        texts = np.empty(0, np.int32)
        texts_of_clusters(own.indptr, own.indices, recalled, level.n_parents, text_ptr, texts)
        texts = np.empty(text_ptr[-1], np.int32)
        texts_of_clusters(own.indptr, own.indices, recalled, level.n_parents, text_ptr, texts)
        return cls(members, counts, text_ptr, texts, text_costs)

    def of_cluster(self, cluster: int) -> NDArray[np.int32]:
        """Texts that train a cluster."""
        if len(self.texts) < self.text_ptr[-1]:
            return self.texts  # all of them train all clusters, and are listed once
        return self.texts[self.text_ptr[cluster] : self.text_ptr[cluster + 1]]


def fit_layer(
    features: Rows,
    level: Level,
    examples: Examples,
    options: SolverOptions,
    seed: int = 0,
    engine: LocalEngine | None = None,
    progress: Progress = SILENT,
    stages: Stages = NO_STAGES,
    name: str = "weights",
) -> Layer:
    """Train all classifiers of a level."""
    check_widths(level)
    trainer = _LevelTrainer(features, level, examples, options, seed)
    engine = engine or LocalEngine()
    whole = GrowingArrays()
    with progress.step(name, level.n_children, "labels") as advance:
        for number, clusters in enumerate(trainer.shards()):
            build = trainer.shard_builder(clusters, engine, advance)
            part, fresh = stages.arrays(f"{name.replace(' ', '-')}-{number}", build)
            whole.append(part, clusters.stop / level.n_parents)
            if not fresh:
                advance(int(level.child_ptr[clusters[-1] + 1] - level.child_ptr[clusters[0]]))
    return layer_of(level, whole.arrays())


class _LevelTrainer:
    """Everything the jobs of one level share."""

    def __init__(self, features: Rows, level: Level, examples: Examples, options: SolverOptions, seed: int) -> None:
        self.features, self.level, self.examples, self.options, self.seed = features, level, examples, options, seed
        self.solve = _SOLVERS[options.loss]
        self.position = np.empty(level.n_children, np.int64)
        self.position[level.children] = np.arange(level.n_children)
        frequency = examples.members.texts_per_label()[level.children]  # (n_children,) by place
        self.cost_factor = (np.maximum(frequency, 1) ** -self._cost_decay()).astype(np.float32)
        self.absent = frequency == 0
        self.scratch = PerThread(features.scratch)

    def _terms_per_text(self) -> float:
        return len(self.features.indices) / max(len(self.features), 1)

    def _cost_decay(self) -> float:
        if self.options.cost_decay == "auto":
            return min(0.5, 0.9 * float(max(self._terms_per_text(), 1.0) ** -0.4))
        return self.options.cost_decay

    def shards(self) -> Iterator[range]:
        """Neighbouring clusters whose training takes about half a minute."""
        per_text = self._terms_per_text()
        blocks = -(-np.diff(self.level.child_ptr) // LANES)
        work = np.cumsum(np.diff(self.examples.text_ptr) * blocks * per_text * LANES)
        cuts = np.searchsorted(work, np.arange(_SHARD_WORK, work[-1], _SHARD_WORK))
        edges = np.unique(np.concatenate([[0], cuts, [self.level.n_parents]]))
        return (range(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))

    def shard_builder(
        self, clusters: range, engine: LocalEngine, advance: Callable[[int], None]
    ) -> Callable[[], dict[str, NDArray[Any]]]:
        """A function that trains these clusters."""

        def build() -> dict[str, NDArray[Any]]:
            whole, pieces = GrowingArrays(), []
            jobs = list(self._jobs(clusters, engine.n_threads))
            for (cluster, first, stop), piece in zip(jobs, engine.map(self._train, jobs), strict=True):
                pieces.append(piece)
                advance(stop - first)
                if stop == self.level.child_ptr[cluster + 1]:
                    whole.append(chunk_of(pieces), (cluster + 1 - clusters.start) / len(clusters))
                    pieces = []
            return whole.arrays()

        return build

    def _jobs(self, clusters: range, n_threads: int) -> Iterator[tuple[int, int, int]]:
        """(cluster, first child, stop child): wide clusters are cut so that all threads have work."""
        n_blocks = -(-self._n_children(clusters) // LANES)
        share = max(1, n_blocks // (4 * n_threads)) * LANES
        for cluster in clusters:
            start, stop = int(self.level.child_ptr[cluster]), int(self.level.child_ptr[cluster + 1])
            for first in range(start, max(stop, start + 1), share):
                yield cluster, first, min(first + share, stop)

    def _n_children(self, clusters: range) -> int:
        return int(self.level.child_ptr[clusters[-1] + 1] - self.level.child_ptr[clusters[0]])

    def _train(self, job: tuple[int, int, int]) -> Piece:
        cluster, first, stop = job
        texts = self.examples.of_cluster(cluster)
        if len(texts) == len(self.features):
            local, order = self.features.all_local(), np.arange(self.features.n_columns, dtype=np.int32)
        else:
            local = gather(self.features, texts, self.scratch.value)
            order = np.argsort(local.features, kind="stable").astype(np.int32)
        blocks = [self._solve_block(local, texts, order, at, min(at + LANES, stop)) for at in range(first, stop, LANES)]
        sorted_features = local.features[order]
        lanes_before = np.arange(len(blocks)) * LANES + first - int(self.level.child_ptr[cluster])
        return Piece(
            feature=np.concatenate([sorted_features[rows] for rows, _, _, _ in blocks] or [np.empty(0, np.int32)]),
            child=np.concatenate(
                [lanes + before for (_, lanes, _, _), before in zip(blocks, lanes_before, strict=True)]
                or [np.empty(0, np.int64)]
            ).astype(np.uint16),
            weight=np.concatenate([weight for _, _, weight, _ in blocks] or [np.empty(0, np.float32)]),
            bias=np.concatenate([bias for _, _, _, bias in blocks] or [np.empty(0, np.float32)]),
        )

    def _solve_block(
        self, local: LocalRows, texts: NDArray[np.int32], order: NDArray[np.int32], first: int, stop: int
    ) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Train children first..stop of the level; rows in `order`, lanes, weights, and the biases."""
        options, members = self.options, self.examples.members
        n_lanes = stop - first
        targets = np.empty((len(texts), LANES), np.int8)
        fill_targets(texts, members.indptr, members.indices, self.examples.counts, self.position, first, stop, targets)
        factor = np.ones(LANES, np.float32)
        factor[:n_lanes] = self.cost_factor[first:stop]
        weights = np.zeros((len(local.features) + 1, LANES), np.float32)
        self.solve(
            local.indptr, local.indices, local.values, targets, self.examples.text_costs[texts],
            factor * np.float32(options.cost_positive), factor * np.float32(options.cost_negative),
            np.float32(options.bias), np.float32(options.tolerance), options.max_passes,
            np.uint64(self.seed * 1_000_003 + first), weights,
        )  # fmt: skip
        weights[:, :n_lanes][:, self.absent[first:stop]] = 0
        threshold = np.float32(max(options.threshold, 1e-30))
        none = np.empty(0, np.int32), np.empty(0, np.uint8), np.empty(0, np.float32)
        n = prune(weights, order, n_lanes, threshold, *none)
        kept = np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.float32)
        if n:
            prune(weights, order, n_lanes, threshold, *kept)
        bias = weights[-1, :n_lanes] * np.float32(options.bias)
        return *kept, np.where(self.absent[first:stop], np.float32(_NEVER), bias)
