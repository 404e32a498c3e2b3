"""The pool of training texts, with the hashes that tell which of them are copies of each other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from longtail.engines.local import LocalEngine
from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.neighbours.base import NO_GROUP, Neighbours, Pool, Search
from longtail.neighbours.dense import DensePool
from longtail.neighbours.lists import ListPool
from longtail.neighbours.sparse import SparsePool
from longtail.options import Options
from longtail.progress import SILENT, Progress

Points: TypeAlias = NDArray[Any] | Rows
"""Texts as points: (n, d) dense, or sparse rows."""


class SearchOptions(Options):
    """How the nearest texts are searched."""

    kind: Literal["exact", "faiss"] = "exact"
    """`exact` compares each text with all of the pool; `faiss` only with those near by, for millions of dense points
    (needs the extra `ann`)."""
    n_lists: PositiveInt | None = None
    """faiss: the pool is split into so many lists of texts near to each other; by default 4 √n."""
    n_probed: PositiveInt = 64
    """faiss: so many lists are searched, those nearest to the text; more find more. All of them find what is exact."""


class NeighbourIndex:
    """Texts among which neighbours are looked for."""

    def __init__(self, pool: Pool, hashes: NDArray[np.uint64], options: SearchOptions) -> None:
        self.pool, self.hashes, self.options = pool, hashes, options

    @classmethod
    def build(cls, points: Points, hashes: NDArray[np.uint64], options: SearchOptions | None = None) -> NeighbourIndex:
        """From the points of training texts, of any length, and the hashes of their content."""
        options = options or SearchOptions()
        _check_hashes(hashes, points)
        pool: Pool
        if isinstance(points, Rows):
            if options.kind == "faiss":
                raise ConfigError("search.kind must be exact for sparse points, got faiss; use dense ones (kind words)")
            pool = SparsePool.of(points)
        elif options.kind == "faiss":
            pool = ListPool.of(points, options.n_lists, options.n_probed)
        else:
            pool = DensePool.of(points)
        return cls(pool, np.asarray(hashes, np.uint64), options)

    def __len__(self) -> int:
        return len(self.hashes)

    def nearest(
        self,
        points: Points,
        k: int,
        hashes: NDArray[np.uint64] | None = None,
        engine: LocalEngine | None = None,
        progress: Progress = SILENT,
        search: Search | None = None,
    ) -> Neighbours:
        """The k nearest of the pool; with `hashes` of the texts only among texts of other content.

        `search` compares dense points elsewhere, such as on a GPU (`nn.nearest`).
        """
        if k < 1:
            raise ConfigError(f"the number of neighbours must be at least 1, got {k}")
        if hashes is not None:
            _check_hashes(hashes, points)
        groups = self._groups_of(hashes, len(points))
        with progress.step("neighbours", len(points), "texts") as advance:
            return self.pool.nearest(points, k, self._contents[1], groups, engine or LocalEngine(), advance, search)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is to be stored."""
        return {**self.pool.arrays(), "hashes": self.hashes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], options: SearchOptions | None = None) -> NeighbourIndex:
        """From what `arrays` gave."""
        options = options or SearchOptions()
        own = dict(arrays)
        hashes = own.pop("hashes")
        pool: Pool
        if "ptr" in own:
            pool = SparsePool(**own)
        else:
            pool = ListPool.from_bytes(own["lists"], options.n_probed) if "lists" in own else DensePool(**own)
        return cls(pool, hashes, options)

    @cached_property
    def _contents(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The different hashes of the pool, in order; and the number of that of each text: its group."""
        different, groups = np.unique(self.hashes, return_inverse=True)
        return different, groups.astype(np.int32)

    def _groups_of(self, hashes: NDArray[np.uint64] | None, n: int) -> NDArray[np.int32]:
        """The group of the pool that has the content of each text."""
        if hashes is None or not len(self):
            return np.full(n, NO_GROUP, np.int32)
        different = self._contents[0]
        at = np.minimum(np.searchsorted(different, hashes), len(different) - 1)
        return np.where(different[at] == hashes, at, NO_GROUP).astype(np.int32)


def _check_hashes(hashes: NDArray[np.uint64], points: Points) -> None:
    if len(hashes) != len(points):
        raise DataError(f"hashes must be as many as points, got {len(hashes):,} and {len(points):,}")
