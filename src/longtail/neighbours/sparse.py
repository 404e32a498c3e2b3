"""The nearest of sparse points: the pool as an inverted index, which a text walks through term by term.

A text meets only the texts that it shares terms with; those without any have cosine 0 and come last, by their number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.engines.local import LocalEngine, PerThread
from longtail.errors import DataError
from longtail.kernels.native.nearest import nearest_rows
from longtail.kernels.rows import Rows
from longtail.neighbours.base import Neighbours, Search
from longtail.progress import Advance

_TEXTS_AT_ONCE = 256


class SparsePool:
    """Rows of unit length, by column: column c is in texts[ptr[c] : ptr[c+1]] with weights[ptr[c] : ptr[c+1]]."""

    def __init__(self, ptr: NDArray[np.int64], texts: NDArray[np.int32], weights: NDArray[np.float32]) -> None:
        self.ptr, self.texts, self.weights = ptr, texts, weights

    @classmethod
    def of(cls, rows: Rows) -> SparsePool:
        """From rows of any length."""
        by_column = unit_rows(rows).matrix().tocsc()
        return cls(by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32), by_column.data)

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
        """See `Pool.nearest`; `search` is for dense points."""
        n_columns = len(self.ptr) - 1
        if not isinstance(points, Rows) or points.n_columns != n_columns:
            got = f"{points.n_columns:,}" if isinstance(points, Rows) else f"dense ones of shape {points.shape}"
            raise DataError(f"points must be sparse rows of {n_columns:,} columns as those of the pool, got {got}")
        found = Neighbours.none(len(points), k)
        room = PerThread(lambda: np.zeros(len(pool_groups), np.float32))
        pool = self.ptr, self.texts, self.weights

        def fill(start: int) -> int:
            own = slice(start, min(start + _TEXTS_AT_ONCE, len(points)))
            some = unit_rows(points.part(own.start, own.stop))
            out = found.texts[own], found.cosines[own]
            nearest_rows(some.indptr, some.indices, some.values, *pool, groups[own], pool_groups, room.value, *out)
            return len(some)

        for n in engine.map(fill, range(0, len(points), _TEXTS_AT_ONCE)):
            advance(n)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Pool.arrays`."""
        return {"ptr": self.ptr, "texts": self.texts, "weights": self.weights}


def unit_rows(rows: Rows) -> Rows:
    """Rows of length 1; empty ones stay as they are."""
    values = np.empty_like(rows.values)
    for start in range(0, len(rows), _TEXTS_AT_ONCE):
        ptr = rows.indptr[start : start + _TEXTS_AT_ONCE + 1]
        some = rows.values[ptr[0] : ptr[-1]].astype(np.float64)
        owner = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        lengths = np.sqrt(np.bincount(owner, some**2, len(ptr) - 1))
        if not np.isfinite(lengths).all():
            raise DataError("points must be numbers, got NaN or infinity; look for features that overflow")
        lengths[lengths == 0] = 1
        values[ptr[0] : ptr[-1]] = some / lengths[owner]
    return Rows(rows.indptr, rows.indices, values, rows.n_columns)
