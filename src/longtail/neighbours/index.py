"""A pool of training texts, and the hashes by which copies are left out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.neighbours.base import NO_GROUP, Blocks, Neighbours, Pool, Query, Search
from longtail.neighbours.dense import DensePool
from longtail.neighbours.lists import ListPool
from longtail.neighbours.sparse import SparsePool
from longtail.options import Options
from longtail.run.run import Run
from longtail.structure import Structure

Points: TypeAlias = NDArray[Any] | Rows
"""Texts as points: (n, d) dense, or sparse rows."""


class NeighbourSearchOptions(Options):
    """How the nearest texts are searched."""

    kind: Literal["exact", "faiss"] = "exact"
    """`exact` compares each text with all of the pool; `faiss` only with some lists of it, for millions of dense points
    (needs the extra `ann`)."""
    n_lists: PositiveInt | None = None
    """faiss: number of lists that the pool is split into by k-means; by default 4 √n."""
    n_probed: PositiveInt = 64
    """faiss: number of lists that are searched, those nearest to the text. All of them give the exact result."""


class NeighbourIndex:
    """Texts that are searched for neighbours."""

    def __init__(self, pool: Pool, hashes: NDArray[np.uint64], options: NeighbourSearchOptions) -> None:
        self.pool, self.hashes, self.options = pool, hashes, options

    @classmethod
    def build(
        cls, points: Points, hashes: NDArray[np.uint64], options: NeighbourSearchOptions | None = None
    ) -> NeighbourIndex:
        """Return an index of training texts, from points of any length and the hashes of their content."""
        options = options or NeighbourSearchOptions()
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
        *,
        run: Run | None = None,
        search: Search | None = None,
        blocks: Blocks | None = None,
    ) -> Neighbours:
        """Return the k nearest of the pool; with `hashes` of the texts only among texts of other content.

        `search` compares dense points elsewhere, such as on a GPU (`nn.nearest`). `blocks` says how many points are
        compared at once; it does not change the result.
        """
        run = run or Run()
        if k < 1:
            raise ConfigError(f"the number of neighbours must be at least 1, got {k}")
        if hashes is not None:
            _check_hashes(hashes, points)
        query = Query(points, k, self._groups_of(hashes, len(points)), self._contents[1], blocks)
        nearest = Neighbours.none(len(points), k)
        with run.progress.step("neighbours", len(points), "texts") as advance:
            for rows, some in self.pool.nearest(query, run, search):
                nearest.texts[rows], nearest.cosines[rows] = some
                advance(len(some.texts))
        return nearest

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be stored."""
        return {**self.pool.arrays(), "hashes": self.hashes}

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], width: int, options: NeighbourSearchOptions | None = None
    ) -> NeighbourIndex:
        """Return the index of points of this width of which `arrays` gave these."""
        options = options or NeighbourSearchOptions()
        stored = Structure(arrays, "the pool")
        hashes = stored.array("hashes", np.uint64)
        pool: Pool
        if "ptr" in arrays:
            texts = stored.numbers("texts", np.int32, below=len(hashes))
            weights = stored.finite("weights", np.float32, shape=texts.shape)
            ptr = stored.pointers("ptr", to=texts, n=width)
            pool = SparsePool(ptr, texts, weights, n_texts=len(hashes))
        elif "lists" in arrays:
            pool = ListPool.from_bytes(stored.array("lists", np.uint8), options.n_probed)
            stored.require("lists", (pool.index.ntotal, pool.index.d) == (len(hashes), width), "hold all points")
        else:
            pool = DensePool(stored.finite("points", np.float32, shape=(len(hashes), width)))
        return cls(pool, hashes, options)

    @cached_property
    def _contents(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The distinct hashes of the pool in order, and the position of each text's hash among them: its group."""
        different, groups = np.unique(self.hashes, return_inverse=True)
        return different, groups.astype(np.int32)

    def _groups_of(self, hashes: NDArray[np.uint64] | None, n: int) -> NDArray[np.int32]:
        """Return the group of the pool that has the content of each text."""
        if hashes is None or not len(self):
            return np.full(n, NO_GROUP, np.int32)
        different = self._contents[0]
        at = np.minimum(np.searchsorted(different, hashes), len(different) - 1)
        return np.where(different[at] == hashes, at, NO_GROUP).astype(np.int32)


def _check_hashes(hashes: NDArray[np.uint64], points: Points) -> None:
    if len(hashes) != len(points):
        raise DataError(f"hashes must be as many as points, got {len(hashes):,} and {len(points):,}")
