"""Sparse rows that arrive span by span, gathered in arrays that are allocated large enough at once.

The same memory first holds counted terms (ids, counts) and then features (indices, values): features of a
span never need more room than its terms had, so nothing but the result itself is ever held as a whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.sparse import sp

RowArrays = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]
"""Rows as indptr, indices and values."""

_MARGIN = 1.1
_MOST_AT_ONCE = 8


class GatheredRows:
    """Two equally long arrays, of int32 and of int32 or float32 numbers."""

    def __init__(self) -> None:
        self.indices = np.empty(0, np.int32)
        self.counts = np.empty(0, np.int32)

    @property
    def values(self) -> NDArray[np.float32]:
        """The memory of `counts` as float32."""
        return self.counts.view(np.float32)

    def reserve(self, n_entries: int, share: float) -> None:
        """Make room for `n_entries`, and for all others if these are the given share of them."""
        if n_entries > len(self.indices):
            room = room_for(n_entries, share)
            self.indices, self.counts = _copied(self.indices, room), _copied(self.counts, room)

    def arrays(self, row_lengths: list[NDArray[np.int64]]) -> RowArrays:
        """Return the rows as indptr, indices and values, which take the memory over."""
        indptr = np.cumsum(np.concatenate([np.zeros(1, np.int64), *row_lengths]))
        for array in (self.indices, self.counts):
            array.resize(int(indptr[-1]), refcheck=False)
        return indptr, self.indices, self.values


def room_for(n_entries: int, share: float) -> int:
    """Return room for all entries, if so many are the given share of them.

    Memory that is never written to is never allocated, so a guess that is too high costs little.
    """
    return min(int(n_entries / share * _MARGIN), _MOST_AT_ONCE * n_entries)


def as_matrix(rows: RowArrays, n_features: int) -> sp.csr_matrix:
    """Return the same rows as a matrix."""
    indptr, indices, values = rows
    matrix = sp.csr_matrix((values, indices, indptr), shape=(len(indptr) - 1, n_features))
    matrix.has_canonical_format = True
    return matrix


def _copied(array: NDArray[np.int32], room: int) -> NDArray[np.int32]:
    larger = np.empty(room, np.int32)
    larger[: len(array)] = array
    return larger
