"""What every way to search finds, and what is asked of it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from longtail.engines.local import LocalEngine
from longtail.progress import Advance

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
        """Empty places, to be filled."""
        return cls(np.full((n, k), NO_TEXT, np.int32), np.full((n, k), -np.inf, np.float32))


class Search(Protocol):
    """Finds the nearest of a dense pool; the points of both are of unit length, or zero."""

    def __call__(
        self,
        pool: NDArray[np.float32],
        points: NDArray[np.float32],
        k: int,
        pool_groups: NDArray[np.int32],
        groups: NDArray[np.int32],
        advance: Advance,
    ) -> Neighbours:
        """Texts of one group are no neighbours of each other; NO_GROUP is none."""


class Pool(Protocol):
    """Points that are searched."""

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
        """The k nearest of points of any length that are of the pool's kind; see `Search`."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is to be stored."""
