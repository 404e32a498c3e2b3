"""What is asked of a pool of texts, and what every way to search it returns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtail.run.run import Run

NO_TEXT = -1
"""Fills a row that has fewer than k neighbours; its cosine is −inf."""
NO_GROUP = -1
"""The group of a text whose content is nowhere in the pool."""


class Neighbours(NamedTuple):
    """The k nearest texts of the pool for each text, best first, ties by their number."""

    texts: NDArray[np.int32]  # (n, k), NO_TEXT where there are fewer
    cosines: NDArray[np.float32]  # (n, k), −inf there

    @classmethod
    def none(cls, n: int, k: int) -> Neighbours:
        """Return empty places, to be filled."""
        return cls(np.full((n, k), NO_TEXT, np.int32), np.full((n, k), -np.inf, np.float32))

    def without(self, texts: NDArray[np.int64]) -> Neighbours:
        """Return one neighbour less of each: the text of the pool that is given for it (n,), or else the last one."""
        kept = self.texts != texts[:, None]
        kept[kept.all(axis=1), -1] = False
        shape = (len(kept), kept.shape[1] - 1)
        return Neighbours(self.texts[kept].reshape(shape), self.cosines[kept].reshape(shape))


class Blocks(NamedTuple):
    """How many points are compared at once with how many texts of the pool."""

    points: int
    pool: int = 1 << 14


@dataclass(frozen=True, eq=False)
class Query:
    """Points whose k nearest texts of a pool are asked for. Texts in the group of a point are no neighbours of it."""

    points: Any
    """(n, d) or sparse rows, as the points of the pool."""
    k: int
    groups: NDArray[np.int32]  # (n,), NO_GROUP for none
    pool_groups: NDArray[np.int32]  # (n_pool,)
    blocks: Blocks | None = None
    """By default what suits the pool."""

    def __len__(self) -> int:
        return len(self.groups)


class Search(Protocol):
    """Searches a dense pool; the points of pool and query have unit length, or are zero."""

    def __call__(self, pool: NDArray[np.float32], query: Query) -> Iterator[Neighbours]:
        """Yield the neighbours of the first points, of the next ones, and so on."""


Found: TypeAlias = Iterator[tuple[slice | NDArray[np.int64], Neighbours]]
"""Some points of a query, each once, and their neighbours."""


class Pool(Protocol):
    """Points that are searched."""

    def nearest(self, query: Query, run: Run, search: Search | None) -> Found:
        """Yield the neighbours of some points after the other; `search` compares dense points elsewhere than here."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be stored."""
