"""Balanced k-means tree: label vectors → a LabelIndex of similar labels (docs/methods/shared.md#balanced-splitting).

    vectors (n_labels, p) sparse, unit rows  ->  LabelIndex

Binary splits, level by level; a wide tree keeps only some of the binary levels. Every group draws its
first centres from its own seed, so the result is the same for any number of threads. A group that is small
enough is kept as it is, so every number of labels works.

With `fill`, splits are cut at multiples of `max_leaf`: nearly all leaves are then exactly full, which
suits the solver's sixteen lanes; without it, nodes are halved and leaf sizes differ by at most one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from longtail.kernels.native.clustering import assign_to_centres, split_in_two
from longtail.kernels.native.lanes import LANES
from longtail.kernels.reference.clustering import BY_GAIN, BY_MEMBERS, BY_SCORES
from longtail.kernels.rows import Rows, SharedRows, gather
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.options import Ablation, Options
from longtail.run.run import Run
from longtail.sparse import sp

Groups: TypeAlias = list[NDArray[np.int32]]
"""The labels of each group."""
_JOBS_PER_THREAD = 16
_STOPS = {"gain": BY_GAIN, "scores": BY_SCORES, "members": BY_MEMBERS}


class TreeOptions(Options):
    """How labels are grouped."""

    n_levels: int = Field(2, ge=0)
    """Levels of clusters above the labels; 0 puts all labels under the root. Balanced trees: not used when `branching`
    is given."""
    branching: int | None = Field(None, ge=2)
    """Children per cluster; the depth follows. A power of two for balanced trees."""
    max_children: int | None = Field(None, ge=2)
    """Clusters below a cluster of a balanced tree, at most: where `n_levels` would give more, there are more levels.
    The work of finding a text's clusters then grows with the logarithm of their number, not with a root of it."""
    max_leaf: PositiveInt = 16
    """Labels in a last-level cluster, at most (unbalanced trees: as a wish)."""
    fill: bool = True
    """Fill the leaves to `max_leaf` instead of halving all nodes evenly."""
    balanced: bool = True
    """Split into equal halves; otherwise plain k-means with `branching` clusters of any size (Bonsai)."""
    geometry: Ablation[Literal["spherical", "euclidean"]] = "spherical"
    """Centres as normalised sums, or as means."""
    stop: Ablation[Literal["gain", "scores", "members"]] = "gain"
    """Stop a split when the objective gains less than `tolerance`, when the squared scores change by a smaller
    share than that, or when no label changes sides."""
    tolerance: Ablation[float] = Field(1e-4, ge=0)
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
    *,
    seed: int = 0,
    run: Run | None = None,
) -> LabelIndex:
    """Return an index of labels that are grouped by their vectors."""
    n_labels = vectors.shape[0]
    if n_labels <= 1 or (options.branching is None and options.n_levels == 0):
        return LabelIndex.flat(n_labels)
    run = run or Run()
    spec = SplitSpec(Rows.of(vectors).share(run.engine, "vectors"), options, seed)
    levels = (_grow_balanced if options.balanced else _grow_any)(spec, np.arange(n_labels, dtype=np.int32), run)
    return index_of_groups([levels[depth] for depth in _kept(len(levels) - 1, options)], n_labels)


def even_index(n_labels: int, options: TreeOptions) -> LabelIndex:
    """Return an index of about the shape that `build_tree` gives: to count costs before labels are clustered."""
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
    n = options.n_levels
    if options.max_children is not None:
        n = max(n, -(-depth // (options.max_children.bit_length() - 1)))
    n = min(n, depth)
    return [round((t + 1) * depth / n) for t in range(n)]


def _grow_balanced(spec: SplitSpec, everyone: NDArray[np.int32], run: Run) -> list[Groups]:
    """Return the groups of every depth of the binary tree, the root first."""
    n_leaves = -(-len(everyone) // spec.options.max_leaf)
    depth = int(np.ceil(np.log2(max(n_leaves, 1))))
    levels = [[everyone]]
    with run.progress.step("label tree", depth, "levels") as advance:
        for level in range(depth):
            levels.append(_split_level(spec, levels[-1], level, run))
            advance(1)
    return levels


def _grow_any(spec: SplitSpec, everyone: NDArray[np.int32], run: Run) -> list[Groups]:
    """Return the groups of every level of an unbalanced tree, the root first."""
    options = spec.options
    levels = [[everyone]]
    n_levels = options.n_levels if options.n_levels else 64
    with run.progress.step("label tree", n_levels, "levels") as advance:
        for level in range(n_levels):
            if max(len(group) for group in levels[-1]) <= options.max_leaf:
                break
            groups = _split_level(spec, levels[-1], level, run)
            if len(groups) == len(levels[-1]):  # labels with the same vector cannot be separated
                break
            levels.append(groups)
            advance(1)
    return levels


def _split_level(spec: SplitSpec, groups: Groups, level: int, run: Run) -> Groups:
    """Split all groups of a level, many small ones in one job."""
    ends = np.cumsum([len(group) for group in groups])
    cuts = np.searchsorted(ends, np.linspace(0, ends[-1], _JOBS_PER_THREAD * run.engine.n_threads + 1)[1:-1], "right")
    edges = np.unique([0, *cuts, len(groups)]).tolist()
    jobs = ((level, first, groups[first:stop]) for first, stop in pairwise(edges))
    return [group for split in run.engine.map(partial(split_groups, spec), jobs) for group in split]


@dataclass(frozen=True)
class SplitSpec:
    """By what, and how, groups of labels are split."""

    vectors: SharedRows
    options: TreeOptions
    seed: int


def split_groups(spec: SplitSpec, job: tuple[int, int, Groups]) -> Groups:
    """Return the groups that some groups of labels fall into, one after the other.

    `job` is their level, the number of the first of them in the level, and the groups; first centres are drawn by level
    and number.
    """
    level, first, groups = job
    vectors, split = spec.vectors.open(), _halve if spec.options.balanced else _scatter
    return [
        part
        for number, group in enumerate(groups, first)
        for part in split(vectors, group, spec.options, [spec.seed, level, number])
    ]


def _halve(vectors: Rows, group: NDArray[np.int32], options: TreeOptions, seed: list[int]) -> Groups:
    """Return two groups of prescribed sizes, or the group itself if it is small enough."""
    if len(group) < 2 or (options.fill and len(group) <= options.max_leaf):
        return [group]
    n_left = len(group) // 2
    if options.fill:
        n_left = (-(-len(group) // options.max_leaf) // 2) * options.max_leaf
    local = gather(vectors, group)
    first, second = np.random.default_rng(seed).choice(len(group), 2, replace=False)
    side = np.zeros(len(group), np.int8)
    split_in_two(
        local.indptr, local.indices, local.values, len(local.features), n_left, first, second,
        options.geometry == "spherical", _STOPS[options.stop], options.tolerance, options.max_passes,
        side, np.empty(options.max_passes),
    )  # fmt: skip
    return [group[side == 0], group[side == 1]]


def _scatter(vectors: Rows, group: NDArray[np.int32], options: TreeOptions, seed: list[int]) -> Groups:
    """Return up to `branching` groups of any size, by plain k-means."""
    k = min(options.branching or 2, len(group))
    if len(group) <= options.max_leaf or k < 2:
        return [group]
    local = gather(vectors, group)
    n_features = len(local.features)
    matrix = sp.csr_matrix((local.values, local.indices, local.indptr), shape=(len(group), n_features))
    nearest, similarity = np.empty(len(group), np.int64), np.empty(len(group), np.float32)
    centres = np.zeros((-(-k // LANES), n_features, LANES), np.float32)
    sums = matrix[np.random.default_rng(seed).choice(len(group), k, replace=False)]
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
        belongs = sp.csr_matrix((np.ones(len(group), np.float32), (nearest, np.arange(len(group)))), (k, len(group)))
        sums = (belongs @ matrix).tocsr()
    return [group[nearest == c] for c in range(k) if (nearest == c).any()]
