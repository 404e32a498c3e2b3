"""Sparse rows that arrive span by span, gathered in arrays that grow without being copied.

The same memory first holds counted terms (ids, counts) and then features (indices, values): features of a
span never need more room than its terms had, so nothing but the result itself is ever held as a whole.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

_GROWTH = 1.25


class GrowingRows:
    """Two equally long arrays, of int32 and of int32 or float32 numbers."""

    def __init__(self) -> None:
        self.indices = np.empty(1 << 10, np.int32)
        self.counts = np.empty(1 << 10, np.int32)

    @property
    def values(self) -> NDArray[np.float32]:
        """The memory of `counts` as float32."""
        return self.counts.view(np.float32)

    def reserve(self, n_entries: int) -> None:
        """Make room for at least so many entries."""
        if n_entries > len(self.indices):
            self._resize(int(n_entries * _GROWTH))

    def matrix(self, row_lengths: list[NDArray[np.int64]], n_features: int) -> sp.csr_matrix:
        """The rows as a matrix; this takes the memory over."""
        indptr = np.cumsum(np.concatenate([np.zeros(1, np.int64), *row_lengths]))
        self._resize(int(indptr[-1]))
        made = sp.csr_matrix((self.values, self.indices, indptr), shape=(len(indptr) - 1, n_features))
        made.has_canonical_format = True
        return made

    def _resize(self, n_entries: int) -> None:
        # Large blocks are moved by the page table, not copied. Nobody holds a view while this happens.
        self.indices.resize(n_entries, refcheck=False)
        self.counts.resize(n_entries, refcheck=False)
