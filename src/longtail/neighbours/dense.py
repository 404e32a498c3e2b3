"""The nearest of dense points: blocks of texts times blocks of the pool, and the k best so far.

    points (m, d), pool (n, d)  ->  texts (m, k), cosines (m, k)

The last bits of a product depend on the shape of its blocks, on the machine and its library, and would order copies of
a text at random. So a few more than k texts are searched, and their cosines are computed again, each by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from longtail.errors import DataError
from longtail.neighbours.base import Blocks, Found, Neighbours, Query, Search
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.topk import top_k, top_k_of_rows

_BLOCKS = Blocks(512, 1 << 14)
"""Cosines of a block: 32 MiB per thread."""
_RESCORED_AT_ONCE = 64
_SPARE = 16
"""So many more texts are searched than are asked for."""


class DensePool:
    """Points of unit length (n, d)."""

    def __init__(self, points: NDArray[np.float32]) -> None:
        self.points = points

    @classmethod
    def of(cls, points: NDArray[Any]) -> DensePool:
        """Return the pool of points of any length."""
        return cls(unit_length(points))

    def nearest(self, query: Query, run: Run, search: Search | None) -> Found:
        """Yield the neighbours of some points after the other; see `search_blocks` for the default search."""
        unit = unit_length(checked(query.points, self.points.shape[1]))
        k = min(query.k + _SPARE, max(len(self.points), query.k))
        wider = replace(query, points=unit, k=k, blocks=query.blocks or _BLOCKS)
        rescore = partial(rescored, run.engine.share("pool", self.arrays()), query.k)
        start = 0
        for candidates in (search or partial(search_blocks, run=run))(self.points, wider):
            of_block = unit[start : start + len(candidates.texts)]
            spans = [slice(at, at + _RESCORED_AT_ONCE) for at in range(0, len(of_block), _RESCORED_AT_ONCE)]
            for best in run.engine.map(rescore, [(of_block[span], candidates.texts[span]) for span in spans]):
                yield slice(start, start + len(best.texts)), best
                start += len(best.texts)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be stored."""
        return {"points": self.points}


def checked(points: Any, width: int) -> NDArray[Any]:
    """Return the points, or raise if they cannot be compared with those of the pool."""
    if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1] != width:
        got = points.shape if isinstance(points, np.ndarray) else f"{points.n_columns:,} sparse columns"
        raise DataError(f"points must be of shape (n, {width}) as those of the pool, got {got}")
    return points


def unit_length(points: NDArray[Any], at_once: int = 512) -> NDArray[np.float32]:
    """Return points of length 1; zeros stay as they are."""
    if points.ndim != 2:
        raise DataError(f"points must be of shape (n, d), got {points.shape}")
    unit = np.empty(points.shape, np.float32)
    for start in range(0, len(points), at_once):
        some = points[start : start + at_once].astype(np.float64)
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise DataError("points must be numbers, got NaN or infinity; look for vectors that overflow")
        unit[start : start + at_once] = np.divide(some, lengths, out=some, where=lengths > 0)
    return unit


def search_blocks(pool: NDArray[np.float32], query: Query, run: Run) -> Iterator[Neighbours]:
    """Yield the neighbours of one block of points after the other, compared with the threads of the engine alone."""
    spec = DenseSearchSpec(
        run.engine.share("pool", {"points": pool, "groups": query.pool_groups}),
        run.engine.share("points", {"points": query.points, "groups": query.groups}),
        query.k,
        query.blocks or _BLOCKS,
    )
    with threadpool_limits(1, "blas"):
        yield from run.engine.map(partial(search_block, spec), range(0, len(query), spec.blocks.points))


@dataclass(frozen=True)
class DenseSearchSpec:
    """Which points are compared; both handles hold `points` of unit length and their `groups`."""

    pool: SharedArrays
    query: SharedArrays
    k: int
    blocks: Blocks


def search_block(spec: DenseSearchSpec, start: int) -> Neighbours:
    """Return the nearest of one block of points, from number `start` on."""
    pool, query = spec.pool.open(), spec.query.open()
    points, groups = (query[name][start : start + spec.blocks.points] for name in ("points", "groups"))
    best = Neighbours.none(len(points), spec.k)
    for first in range(0, len(pool["points"]), spec.blocks.pool):
        block = slice(first, first + spec.blocks.pool)
        cosines = points @ pool["points"][block].T  # (n, n_block)
        if (groups >= 0).any():
            cosines[groups[:, None] == pool["groups"][None, block]] = -np.inf
        _merge(best, cosines, first)
    return best


def rescored(pool: SharedArrays, k: int, job: tuple[NDArray[np.float32], NDArray[np.int32]]) -> Neighbours:
    """Return the k best of the candidates (n, m) of points (n, d), by cosines of the two points alone."""
    points, candidates = job
    products = pool.open()["points"][candidates] * points[:, None]  # (n, m, d)
    cosines = np.where(candidates < 0, -np.inf, products.sum(axis=2, dtype=np.float64))
    best = top_k(candidates, cosines.astype(np.float32), k)
    return Neighbours(best.labels, best.scores)


def _merge(best: Neighbours, some: NDArray[np.float32], first: int) -> None:
    """Put what is better in `some` (n, n_block), texts from `first` on, among the k best so far."""
    texts, cosines = best
    k = texts.shape[1]
    bar = cosines[:, -1:]  # a later text must be better than the last one: ties go to the smaller number
    if some.shape[1] > k and np.isneginf(bar).any():
        kth = np.partition(some, -k, axis=1)[:, -k, None]
        bar = np.maximum(bar, np.nextafter(kth, np.float32(-np.inf)))
    rows, columns = np.divmod(np.flatnonzero(some > bar), some.shape[1])
    if not len(rows):
        return
    counts = np.bincount(rows, minlength=len(texts))
    ptr = np.concatenate([[0], np.cumsum(k + counts)])
    before = ptr[:-1, None] + np.arange(k)  # (n, k) places of the best so far; those of the others come behind
    behind = k * (rows + 1) + np.arange(len(rows))
    candidates, scores = np.empty(ptr[-1], np.int32), np.empty(ptr[-1], np.float32)
    candidates[before], scores[before] = texts, cosines
    candidates[behind], scores[behind] = first + columns, some[rows, columns]
    merged = top_k_of_rows(ptr, candidates, scores, k)
    texts[:], cosines[:] = merged.labels, merged.scores
