"""Balanced k-means tree: label vectors → a LabelIndex of similar labels (methods.md 0.6).

    vectors (n_labels, p) sparse, unit rows  ->  LabelIndex

Binary splits, level by level; a wide tree keeps only some of the binary levels. Every node draws its
first centres from its own seed, so the result is the same for any number of threads. A node that is small
enough is finished and kept as it is, so every number of labels works.

With `fill`, splits are cut at multiples of `max_leaf`: nearly all leaves are then exactly full, which
suits the solver's sixteen lanes; without it, nodes are halved and leaf sizes differ by at most one.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from longtail.engines.local import LocalEngine, PerThread
from longtail.kernels.native.clustering import assign_to_centres, split_in_two
from longtail.kernels.native.lanes import LANES
from longtail.kernels.reference.clustering import BY_GAIN, BY_MEMBERS, BY_SCORES
from longtail.kernels.rows import Rows, gather
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.options import Options
from longtail.progress import SILENT, Progress
from longtail.sparse import sp

_STOPS = {"gain": BY_GAIN, "scores": BY_SCORES, "members": BY_MEMBERS}


class TreeOptions(Options):
    """How labels are grouped."""

    n_levels: int = Field(2, ge=0)
    """Levels of clusters above the labels; 0 puts all labels under the root. Balanced trees: not used when `branching`
    is given."""
    branching: int | None = Field(None, ge=2)
    """Children of a cluster: as many levels as that needs. A power of two for balanced trees."""
    max_leaf: PositiveInt = 16
    """Labels in a last-level cluster, at most (unbalanced trees: as a wish)."""
    fill: bool = True
    """Fill the leaves to `max_leaf` instead of halving all nodes evenly."""
    balanced: bool = True
    """Split into equal halves; otherwise plain k-means with `branching` clusters of any size (Bonsai)."""
    geometry: Literal["spherical", "euclidean"] = "spherical"
    """Centres as normalised sums, or as means."""
    stop: Literal["gain", "scores", "members"] = "gain"
    """Stop a split when the objective gains less than `tolerance`, when the squared scores change by a smaller
    share than that, or when no label changes sides."""
    tolerance: float = Field(1e-4, ge=0)
    """See `stop`."""
    max_passes: PositiveInt = 20
    """Passes of one split, at most."""

    @model_validator(mode="after")
    def _balanced_trees_are_binary_inside(self) -> Self:
        if self.balanced and self.branching is not None and self.branching.bit_count() != 1:
            raise ValueError(f"branching must be a power of two (2, 4, 8, …) in a balanced tree, got {self.branching}")
        return self


def build_tree(
    vectors: sp.csr_matrix,
    options: TreeOptions,
    seed: int = 0,
    keys: NDArray[Any] | None = None,
    engine: LocalEngine | None = None,
    progress: Progress = SILENT,
) -> LabelIndex:
    """Group labels by their vectors. `keys` (n_labels,) say who is who: draws go by key, not by position."""
    n_labels = vectors.shape[0]
    keys = np.arange(n_labels) if keys is None else np.asarray(keys)
    everyone = np.argsort(keys, kind="stable").astype(np.int32)
    if n_labels <= 1 or (options.branching is None and options.n_levels == 0):
        return LabelIndex.flat(n_labels)
    grow = _grow_balanced if options.balanced else _grow_any
    levels = grow(_Splitter(vectors, keys, options, seed), everyone, engine or LocalEngine(), progress)
    return index_of_groups([levels[depth] for depth in _kept(len(levels) - 1, options)], n_labels)


def even_index(n_labels: int, options: TreeOptions) -> LabelIndex:
    """An index of about the shape that `build_tree` gives, labels in their order: to count costs before labels are
    clustered."""
    if n_labels <= 1 or (options.branching is None and options.n_levels == 0):
        return LabelIndex.flat(n_labels)
    n_leaves = -(-n_labels // options.max_leaf)
    ways = 2 if options.balanced else options.branching or 2
    depth = 0
    while ways**depth < n_leaves:
        depth += 1
    if not options.balanced:
        depth = min(depth, options.n_levels or depth)
    full = n_leaves if options.balanced and options.fill else min(ways**depth, n_labels)
    counts = [min(ways**at, full) for at in _kept(depth, options)]
    return LabelIndex(
        tuple((np.arange(below) * above // below).astype(np.int32) for above, below in pairwise([1, *counts, n_labels]))
    )


def _kept(depth: int, options: TreeOptions) -> list[int]:
    """Depths of the binary tree that become levels; the last one always does."""
    if not options.balanced or depth == 0:
        return list(range(1, depth + 1))
    if options.branching is not None:
        step = options.branching.bit_length() - 1
        return sorted(range(depth, 0, -step))
    n = min(options.n_levels, depth)
    return [round((t + 1) * depth / n) for t in range(n)]


def _grow_balanced(
    splitter: _Splitter, everyone: NDArray[np.int32], engine: LocalEngine, progress: Progress
) -> list[list[NDArray[np.int32]]]:
    """Groups of every depth of the binary tree, the root first."""
    options = splitter.options
    n_leaves = -(-len(everyone) // options.max_leaf)
    depth = int(np.ceil(np.log2(max(n_leaves, 1))))
    levels = [[everyone]]
    with progress.step("label tree", depth, "levels") as advance:
        for level in range(depth):
            jobs = [(level, at, group) for at, group in enumerate(levels[-1])]
            parts = engine.map(splitter.halve, jobs)
            levels.append([part for halves in parts for part in halves])
            advance(1)
    return levels


def _grow_any(
    splitter: _Splitter, everyone: NDArray[np.int32], engine: LocalEngine, progress: Progress
) -> list[list[NDArray[np.int32]]]:
    """Groups of every level of an unbalanced tree, the root first."""
    options = splitter.options
    levels = [[everyone]]
    n_levels = options.n_levels if options.n_levels else 64
    with progress.step("label tree", n_levels, "levels") as advance:
        for level in range(n_levels):
            if max(len(group) for group in levels[-1]) <= options.max_leaf:
                break
            jobs = [(level, at, group) for at, group in enumerate(levels[-1])]
            groups = [part for parts in engine.map(splitter.scatter, jobs) for part in parts]
            if len(groups) == len(levels[-1]):  # labels with the same vector cannot be told apart
                break
            levels.append(groups)
            advance(1)
    return levels


class _Splitter:
    """Splits one node; holds the vectors and a scratch table a thread."""

    def __init__(self, vectors: sp.csr_matrix, keys: NDArray[Any], options: TreeOptions, seed: int) -> None:
        self.rows = Rows.of(vectors)
        self.keys, self.options, self.seed = keys, options, seed
        self.scratch = PerThread(self.rows.scratch)

    def halve(self, job: tuple[int, int, NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """Two groups of prescribed sizes, or the group itself when it is small enough."""
        level, at, group = job
        options = self.options
        if len(group) < 2 or (options.fill and len(group) <= options.max_leaf):
            return [group]
        n_left = len(group) // 2
        if options.fill:
            n_left = (-(-len(group) // options.max_leaf) // 2) * options.max_leaf
        local = gather(self.rows, group, self.scratch.value)
        first, second = self._draw(level, at, group, 2)
        side = np.zeros(len(group), np.int8)
        split_in_two(
            local.indptr, local.indices, local.values, len(local.features), n_left, first, second,
            options.geometry == "spherical", _STOPS[options.stop], options.tolerance, options.max_passes,
            side, np.empty(options.max_passes),
        )  # fmt: skip
        return [group[side == 0], group[side == 1]]

    def scatter(self, job: tuple[int, int, NDArray[np.int32]]) -> list[NDArray[np.int32]]:
        """Up to `branching` groups of any size by plain k-means."""
        level, at, group = job
        options = self.options
        k = min(options.branching or 2, len(group))
        if len(group) <= options.max_leaf or k < 2:
            return [group]
        local = gather(self.rows, group, self.scratch.value)
        n_features = len(local.features)
        matrix = sp.csr_matrix((local.values, local.indices, local.indptr), shape=(len(group), n_features))
        nearest, similarity = np.empty(len(group), np.int64), np.empty(len(group), np.float32)
        centres = np.zeros((-(-k // LANES), n_features, LANES), np.float32)
        sums = matrix[self._draw(level, at, group, k)]
        before = -np.inf
        for _ in range(options.max_passes):
            dense = np.zeros((len(centres) * LANES, n_features), np.float32)
            sums.toarray(out=dense[: sums.shape[0]])
            norms = np.linalg.norm(dense, axis=1, keepdims=True)
            dense /= np.where(norms > 0, norms, 1)
            centres[:] = dense.reshape(len(centres), LANES, n_features).transpose(0, 2, 1)
            assign_to_centres(local.indptr, local.indices, local.values, centres, k, nearest, similarity)
            gained = float(similarity.mean())
            if gained - before < options.tolerance:
                break
            before = gained
            belongs = sp.csr_matrix(
                (np.ones(len(group), np.float32), (nearest, np.arange(len(group)))), (k, len(group))
            )
            sums = (belongs @ matrix).tocsr()
        return [group[nearest == c] for c in range(k) if (nearest == c).any()]

    def _draw(self, level: int, at: int, group: NDArray[np.int32], n: int) -> NDArray[np.int64]:
        """Positions of `n` different labels, by a draw that depends on keys and the node's own seed only."""
        generator = np.random.default_rng([self.seed, level, at])
        return generator.choice(len(group), n, replace=False)
