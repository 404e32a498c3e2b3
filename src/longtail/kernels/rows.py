"""Sparse rows as kernels want them: fixed number types, and a compact copy of some of them.

Rows       indptr int64, indices int32 (ascending in a row), values float32 of a CSR matrix (n, n_columns)
LocalRows  the same for chosen rows, with the columns they use numbered from 0: small enough for caches
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.kernels.native.rows import gather_rows
from longtail.persist import Folder
from longtail.run.engine import Engine, SharedArrays
from longtail.run.local import Scratch
from longtail.sparse import sp
from longtail.structure import Structure


@dataclass(frozen=True, eq=False)
class Rows:
    """A CSR matrix in the types that kernels are compiled for."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    n_columns: int

    @classmethod
    def of(cls, matrix: sp.csr_matrix) -> Rows:
        """From a scipy matrix, without copies where its types fit and each row has its columns once and in order."""
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        return cls(
            np.ascontiguousarray(matrix.indptr, np.int64),
            np.ascontiguousarray(matrix.indices, np.int32),
            np.ascontiguousarray(matrix.data, np.float32),
            int(matrix.shape[1]),
        )

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def part(self, start: int, stop: int) -> Rows:
        """Neighbouring rows, without copying them."""
        first, last = self.indptr[start], self.indptr[stop]
        return Rows(
            self.indptr[start : stop + 1] - first, self.indices[first:last], self.values[first:last], self.n_columns
        )

    def matrix(self) -> sp.csr_matrix:
        """As a scipy matrix."""
        return sp.csr_matrix((self.values, self.indices, self.indptr), shape=(len(self), self.n_columns))

    def all_local(self) -> LocalRows:
        """All rows with all columns, without copying them."""
        return LocalRows(self.indptr, self.indices, self.values, np.arange(self.n_columns, dtype=np.int32))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the three arrays by name."""
        return {"indptr": self.indptr, "indices": self.indices, "values": self.values}

    @classmethod
    def load(cls, folder: Folder, name: str, n_columns: int) -> Rows:
        """Return the rows stored as `name`."""
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        indices = stored.numbers("indices", np.int32, below=n_columns)
        ptr = stored.pointers("indptr", to=indices)
        return cls(ptr, indices, stored.finite("values", np.float32, shape=indices.shape), n_columns)

    def share(self, engine: Engine, name: str) -> SharedRows:
        """Return a handle of these rows for the jobs of an engine."""
        return SharedRows(engine.share(name, self.arrays()), self.n_columns)


@dataclass(frozen=True)
class SharedRows:
    """A handle of rows, for the specs of jobs."""

    arrays: SharedArrays
    n_columns: int

    def open(self) -> Rows:
        """Return the rows."""
        return Rows(**self.arrays.open(), n_columns=self.n_columns)


@dataclass(frozen=True, eq=False)
class LocalRows:
    """Chosen rows with their own numbering of columns; `features[local]` is the column in the whole matrix."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    features: NDArray[np.int32]


_LOCAL_OF = Scratch(np.int32, -1)
"""What kernels number columns with; they leave it as it was."""


def gather(rows: Rows, chosen: NDArray[Any]) -> LocalRows:
    """Copy the chosen rows; columns are numbered as they first appear, so frequent ones get small numbers."""
    size = int((rows.indptr[chosen + 1] - rows.indptr[chosen]).sum())
    indptr = np.zeros(len(chosen) + 1, np.int64)
    indices, values = np.empty(size, np.int32), np.empty(size, np.float32)
    features = np.empty(min(size, rows.n_columns), np.int32)
    n_features = gather_rows(
        rows.indptr, rows.indices, rows.values, np.asarray(chosen, np.int32), _LOCAL_OF.take(rows.n_columns),
        indptr, indices, values, features,
    )  # fmt: skip
    return LocalRows(indptr, indices, values, features[:n_features].copy())
