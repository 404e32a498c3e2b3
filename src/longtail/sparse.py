"""Sparse matrices: scipy.sparse, and the check that comes before any of its compiled code.

scipy.sparse is loaded when it is first used: a saved model tags texts without it, and it is a fifth of the start. It
trusts the arrays of a matrix, so that one from a file, or one that a program put together, may make it read any memory.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import DataError

if TYPE_CHECKING:
    import scipy.sparse as sp
else:

    class _Lazy:
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("scipy.sparse"), name)

    sp = _Lazy()

__all__ = ["checked_csr", "sp"]

MAX_COLUMNS = 1 << 27
"""Training takes memory for each column, used or not: one far too large number in a file would fill it."""


def checked_csr(matrix: Any, what: str) -> Any:
    """Return a matrix as CSR with the same values; raise if its arrays do not fit together or hold NaN or infinity.

    Args:
        matrix: A sparse matrix of any format.
        what: What errors call it.
    """
    if not hasattr(matrix, "tocsr") or len(matrix.shape) != 2:
        raise DataError(f"{what} must be a sparse matrix with rows and columns, got {type(matrix).__name__}")
    n_rows, n_columns = matrix.shape
    if n_columns > MAX_COLUMNS:
        raise DataError(f"{what} must have at most {MAX_COLUMNS:,} columns, got {n_columns:,}; renumber them")
    if matrix.format in ("csr", "csc"):
        n_outer, n_inner = (n_rows, n_columns) if matrix.format == "csr" else (n_columns, n_rows)
        _check_pointers(matrix.indptr, n_outer, min(len(matrix.indices), len(matrix.data)), what)
        _check_range(matrix.indices[: matrix.indptr[-1]], n_inner, what)
    else:
        matrix = matrix.tocoo()
        _check_range(matrix.row, n_rows, what)
        _check_range(matrix.col, n_columns, what)
    rows = matrix.tocsr()
    if rows.data.dtype.kind not in "biuf":
        raise DataError(f"{what} must hold numbers, got {rows.data.dtype}")
    with np.errstate(over="ignore"):
        is_bad = ~np.isfinite(rows.data[: rows.indptr[-1]].astype(np.float32, copy=False))
    if is_bad.any():
        at = int(np.argmax(is_bad))
        row = int(np.searchsorted(rows.indptr, at, "right")) - 1
        raise DataError(
            f"{what} must hold finite numbers below 3.4e38, got {rows.data[at]} in row {row}, column "
            f"{rows.indices[at]} (counted from 0)"
        )
    return rows


def _check_pointers(indptr: NDArray[Any], n_outer: int, n_entries: int, what: str) -> None:
    is_good = len(indptr) == n_outer + 1 and indptr[0] == 0 and indptr[-1] <= n_entries
    if not is_good or (indptr[1:] < indptr[:-1]).any():
        raise DataError(
            f"{what} must have row pointers that rise from 0 to the number of entries ({n_entries:,}); write it again"
        )


def _check_range(indices: NDArray[Any], n: int, what: str) -> None:
    if len(indices) and not 0 <= indices.min() <= indices.max() < n:
        wrong = indices.min() if indices.min() < 0 else indices.max()
        raise DataError(f"{what} must have indices from 0 to {n - 1:,}, got {wrong:,}; write it again")
