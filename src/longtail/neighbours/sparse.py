"""The nearest of sparse points: the pool as an inverted index, which a text walks through term by term.

A text meets only the texts that it shares terms with; those without any have cosine 0 and come last, by their number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import DataError
from longtail.kernels.native.nearest import band_norms, nearest_rows
from longtail.kernels.rows import Rows, SharedRows
from longtail.neighbours.base import Blocks, Found, Neighbours, Query, Search
from longtail.run.engine import SharedArrays
from longtail.run.local import Scratch
from longtail.run.run import Run
from longtail.sparse import sp

_BLOCKS = Blocks(256)
_TOTALS, _DENSE = Scratch(np.float32, 0), Scratch(np.float32, 0)
"""A number per text of the pool, and one per column; kernels leave zeros."""
_N_BANDS = 8
"""Columns that more than 1/2, 1/4, 1/8 … of the texts have are a band each."""


class SparsePool:
    """Rows of unit length, by column: column c is in texts[ptr[c] : ptr[c+1]] with weights[ptr[c] : ptr[c+1]]."""

    def __init__(
        self, ptr: NDArray[np.int64], texts: NDArray[np.int32], weights: NDArray[np.float32], *, n_texts: int
    ) -> None:
        self.ptr, self.texts, self.weights, self.n_texts = ptr, texts, weights, n_texts

    @classmethod
    def of(cls, rows: Rows) -> SparsePool:
        """Return the pool of points of any length."""
        by_column = unit_rows(rows).matrix().tocsc()
        ptr, texts = by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32)
        return cls(ptr, texts, by_column.data, n_texts=len(rows))

    @cached_property
    def _to_search(self) -> dict[str, NDArray[Any]]:
        """The stored arrays, the same by row, and the lengths of rows in bands of columns."""
        shape = self.n_texts, len(self.ptr) - 1
        rows = Rows.of(sp.csc_matrix((self.weights, self.texts, self.ptr), shape).tocsr())
        shares = np.maximum(np.diff(self.ptr), 1) / max(self.n_texts, 1)
        bands = np.minimum(-np.log2(shares), _N_BANDS - 1).astype(np.int8)
        norms = np.empty((_N_BANDS, self.n_texts), np.float32)
        band_norms(rows.indptr, rows.indices, rows.values, bands, norms)
        return {**self.arrays(), **rows.arrays(), "bands": bands, "norms": norms}

    def nearest(self, query: Query, run: Run, search: Search | None) -> Found:
        """Yield the neighbours of some points after the other; `search` is for dense points and not used."""
        points, n_columns = query.points, len(self.ptr) - 1
        if not isinstance(points, Rows) or points.n_columns != n_columns:
            got = f"{points.n_columns:,}" if isinstance(points, Rows) else f"dense ones of shape {points.shape}"
            raise DataError(f"points must be sparse rows of {n_columns:,} columns as those of the pool, got {got}")
        spec = SparseSearchSpec(
            run.engine.share("pool", self._to_search),
            run.engine.share("groups", {"points": query.groups, "pool": query.pool_groups}),
            points.share(run.engine, "points"),
            query.k,
        )
        at_once = (query.blocks or _BLOCKS).points
        spans = [slice(start, min(start + at_once, len(points))) for start in range(0, len(points), at_once)]
        yield from zip(spans, run.engine.map(partial(search_span, spec), spans), strict=True)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be stored."""
        return {"ptr": self.ptr, "texts": self.texts, "weights": self.weights}


@dataclass(frozen=True)
class SparseSearchSpec:
    """Which points are compared."""

    pool: SharedArrays
    """All arrays of a `SparsePool`."""
    groups: SharedArrays
    """Those of the `points` and of the `pool`."""
    points: SharedRows
    k: int


def search_span(spec: SparseSearchSpec, span: slice) -> Neighbours:
    """Return the nearest of a span of points."""
    pool, groups = spec.pool.open(), spec.groups.open()
    points = unit_rows(spec.points.open().part(span.start, span.stop))
    best = Neighbours.none(len(points), spec.k)
    nearest_rows(
        points.indptr, points.indices, points.values, pool["ptr"], pool["texts"], pool["weights"],
        pool["indptr"], pool["indices"], pool["values"], pool["bands"], pool["norms"],
        groups["points"][span], groups["pool"],
        _TOTALS.take(len(groups["pool"])), _DENSE.take(len(pool["bands"])), best.texts, best.cosines,
    )  # fmt: skip
    return best


def unit_rows(rows: Rows, at_once: int = 256) -> Rows:
    """Return rows of length 1; empty ones stay as they are."""
    values = np.empty_like(rows.values)
    for start in range(0, len(rows), at_once):
        ptr = rows.indptr[start : start + at_once + 1]
        some = rows.values[ptr[0] : ptr[-1]].astype(np.float64)
        owner = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
        lengths = np.sqrt(np.bincount(owner, some**2, len(ptr) - 1))
        if not np.isfinite(lengths).all():
            raise DataError("points must be numbers, got NaN or infinity; look for features that overflow")
        lengths[lengths == 0] = 1
        values[ptr[0] : ptr[-1]] = some / lengths[owner]
    return Rows(rows.indptr, rows.indices, values, rows.n_columns)
