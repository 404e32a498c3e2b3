"""The nearest of dense points: blocks of texts times blocks of the pool, and the k best so far.

    points (m, d), pool (n, d)  ->  texts (m, k), cosines (m, k)

The last bits of a product depend on the shape of its blocks, on the machine and its library, and would choose among
copies as they like. So some more texts than k are searched, and their cosines computed again, each by itself.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from longtail.engines.local import LocalEngine
from longtail.errors import DataError
from longtail.neighbours.base import Neighbours, Search
from longtail.progress import Advance
from longtail.topk import top_k, top_k_of_rows

_TEXTS_AT_ONCE, _POOL_AT_ONCE = 512, 1 << 14
"""Cosines of a block: 32 MiB a thread."""
_SETTLED_AT_ONCE = 64
_SPARE = 16
"""So many more texts are searched than are asked for."""


class DensePool:
    """Points of unit length (n, d)."""

    def __init__(self, points: NDArray[np.float32]) -> None:
        self.points = points

    @classmethod
    def of(cls, points: NDArray[Any]) -> DensePool:
        """From points of any length."""
        return cls(unit_length(points))

    def nearest(
        self,
        points: Any,
        k: int,
        pool_groups: NDArray[np.int32],
        groups: NDArray[np.int32],
        engine: LocalEngine,
        advance: Advance,
        search: Search | None,
    ) -> Neighbours:
        """See `Pool.nearest`."""
        unit = unit_length(checked(points, self.points.shape[1]))
        search = search or partial(search_blocks, engine=engine)
        found = search(self.points, unit, min(k + _SPARE, max(len(self.points), k)), pool_groups, groups, advance)
        return self._settled(unit, found, k, engine)

    def _settled(self, points: NDArray[np.float32], found: Neighbours, k: int, engine: LocalEngine) -> Neighbours:
        """The k best, by cosines that depend on nothing but the two points."""
        best = Neighbours.none(len(points), k)

        def fill(start: int) -> None:
            own = slice(start, start + _SETTLED_AT_ONCE)
            products = self.points[found.texts[own]] * points[own, None]  # (n_own, k + _SPARE, d)
            cosines = np.where(found.texts[own] < 0, -np.inf, products.sum(axis=2, dtype=np.float64))
            some = top_k(found.texts[own], cosines.astype(np.float32), k)
            best.texts[own], best.cosines[own] = some.labels, some.scores

        for _ in engine.map(fill, range(0, len(points), _SETTLED_AT_ONCE)):
            pass
        return best

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Pool.arrays`."""
        return {"points": self.points}


def checked(points: Any, width: int) -> NDArray[Any]:
    """Points that can be compared with those of the pool."""
    if not isinstance(points, np.ndarray) or points.ndim != 2 or points.shape[1] != width:
        got = points.shape if isinstance(points, np.ndarray) else f"{points.n_columns:,} sparse columns"
        raise DataError(f"points must be of shape (n, {width}) as those of the pool, got {got}")
    return points


def unit_length(points: NDArray[Any]) -> NDArray[np.float32]:
    """Points of length 1; zeros stay as they are."""
    if points.ndim != 2:
        raise DataError(f"points must be of shape (n, d), got {points.shape}")
    made = np.empty(points.shape, np.float32)
    for start in range(0, len(points), _TEXTS_AT_ONCE):
        some = points[start : start + _TEXTS_AT_ONCE].astype(np.float64)
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise DataError("points must be numbers, got NaN or infinity; look for vectors that overflow")
        made[start : start + _TEXTS_AT_ONCE] = np.divide(some, lengths, out=some, where=lengths > 0)
    return made


def search_blocks(
    pool: NDArray[np.float32],
    points: NDArray[np.float32],
    k: int,
    pool_groups: NDArray[np.int32],
    groups: NDArray[np.int32],
    advance: Advance,
    engine: LocalEngine,
) -> Neighbours:
    """See `Search`: with the threads of `engine`, and none of numpy's beside them."""
    found = Neighbours.none(len(points), k)

    def fill(start: int) -> int:
        own = slice(start, start + _TEXTS_AT_ONCE)
        texts, cosines = found.texts[own], found.cosines[own]
        for first in range(0, len(pool), _POOL_AT_ONCE):
            block = slice(first, first + _POOL_AT_ONCE)
            some = points[own] @ pool[block].T  # (n_own, n_block)
            if (groups[own] >= 0).any():
                some[groups[own, None] == pool_groups[None, block]] = -np.inf
            _merge(texts, cosines, some, first)
        return len(texts)

    with threadpool_limits(1, "blas"):
        for n in engine.map(fill, range(0, len(points), _TEXTS_AT_ONCE)):
            advance(n)
    return found


def _merge(texts: NDArray[np.int32], cosines: NDArray[np.float32], some: NDArray[np.float32], first: int) -> None:
    """Put what is better in `some` (n, n_block), texts from `first` on, among the k best so far."""
    k = texts.shape[1]
    bar = cosines[:, -1:]  # a later text must be better than the last one: ties go to the smaller number
    if some.shape[1] > k and np.isneginf(bar).any():
        own = np.partition(some, -k, axis=1)[:, -k, None]
        bar = np.maximum(bar, np.nextafter(own, np.float32(-np.inf)))
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
    best = top_k_of_rows(ptr, candidates, scores, k)
    texts[:], cosines[:] = best.labels, best.scores
