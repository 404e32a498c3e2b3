"""The nearest training texts of a text, by cosine: exactly, or nearly for millions of texts.

    build(points (n, d) or sparse rows, hashes (n,))  ->  NeighbourIndex, the pool
    nearest(points (m, d), k, hashes (m,))            ->  Neighbours: texts (m, k), cosines (m, k), best first

A pool is made of training texts and of nothing else. A training text that looks for neighbours must find neither itself
nor a copy of itself, which would show it its own labels: with `hashes`, texts of the pool that have the same content
are no neighbours. They are left out before the k best are taken, so that many copies cannot crowd out the others.

Scores of a block of texts with a block of the pool are all that is ever held: never one number for each pair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import as_strings
from longtail.engines.local import LocalEngine
from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.options import Options
from longtail.progress import SILENT, Advance, Progress
from longtail.topk import top_k

NO_TEXT = -1
"""Fills a row that has fewer than k neighbours; its cosine is −inf."""
NO_GROUP = -1
"""The group of a text whose content is nowhere in the pool."""

Points: TypeAlias = NDArray[Any] | Rows
"""Texts as points: (n, d) dense, or sparse rows."""

_TEXTS_AT_ONCE, _POOL_AT_ONCE = 512, 1 << 14
"""Cosines of a block: 32 MiB a thread."""
_READ_AT_ONCE = 1024


class SearchOptions(Options):
    """How the nearest texts are searched."""

    kind: Literal["exact"] = "exact"
    """`exact` compares each text with all of the pool."""


class Neighbours(NamedTuple):
    """The k nearest texts of the pool for each text, best first, ties by their number."""

    texts: NDArray[np.int32]  # (n, k), NO_TEXT where there are fewer
    cosines: NDArray[np.float32]  # (n, k), −inf there


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
        """Texts of the same group, which is at least 0, are no neighbours of each other."""


def content_hashes(texts: pa.Table, columns: Sequence[str]) -> NDArray[np.uint64]:
    """One number a text, the same for the same content in these columns, in every process and on every machine.

    White space at the ends, more of it than one blank, and upper or lower case make no difference; a column that is
    missing is as one of empty texts. Two different texts of a million share a number once in thirty million such sets.
    """
    made = np.empty(len(texts), np.uint64)
    known = [as_strings(texts[name], name) if name in texts.column_names else None for name in columns]
    for start in range(0, len(texts), _READ_AT_ONCE):
        n = min(_READ_AT_ONCE, len(texts) - start)
        parts = [[""] * n if column is None else column.slice(start, n).to_pylist() for column in known]
        made[start : start + n] = [_hash_of(fields) for fields in zip(*parts, strict=True)]
    return made


def _hash_of(fields: Sequence[str]) -> int:
    content = "\n".join(" ".join(field.casefold().split()) for field in fields)
    return int.from_bytes(hashlib.blake2b(content.encode(), digest_size=8).digest(), "little")


class NeighbourIndex:
    """Texts among which neighbours are looked for."""

    def __init__(self, pool: NDArray[np.float32], hashes: NDArray[np.uint64], options: SearchOptions) -> None:
        self.pool, self.hashes, self.options = pool, hashes, options

    @classmethod
    def build(cls, points: Points, hashes: NDArray[np.uint64], options: SearchOptions | None = None) -> NeighbourIndex:
        """From the points of training texts, of any length, and the hashes of their content."""
        if len(hashes) != len(points):
            raise DataError(f"hashes must be as many as points, got {len(hashes):,} and {len(points):,}")
        if isinstance(points, Rows):
            raise NotImplementedError("sparse points come with the next commit")
        return cls(unit_length(points), np.asarray(hashes, np.uint64), options or SearchOptions())

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
        if hashes is not None and len(hashes) != len(points):
            raise DataError(f"hashes must be as many as points, got {len(hashes):,} and {len(points):,}")
        if isinstance(points, Rows) or points.ndim != 2 or points.shape[1] != self.pool.shape[1]:
            got = f"{points.n_columns:,} sparse columns" if isinstance(points, Rows) else points.shape
            raise DataError(f"points must be of shape (n, {self.pool.shape[1]}) as those of the pool, got {got}")
        groups = self._groups_of(hashes, len(points))
        search = search or partial(exact_search, engine=engine or LocalEngine())
        with progress.step("neighbours", len(points), "texts") as advance:
            return search(self.pool, unit_length(points), k, self._groups, groups, advance)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What is to be stored."""
        return {"points": self.pool, "hashes": self.hashes}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], options: SearchOptions | None = None) -> NeighbourIndex:
        """From what `arrays` gave."""
        return cls(arrays["points"], arrays["hashes"], options or SearchOptions())

    @cached_property
    def _contents(self) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
        """The different hashes of the pool, in order; and the number of that of each text: its group."""
        different, groups = np.unique(self.hashes, return_inverse=True)
        return different, groups.astype(np.int32)

    @property
    def _groups(self) -> NDArray[np.int32]:
        return self._contents[1]

    def _groups_of(self, hashes: NDArray[np.uint64] | None, n: int) -> NDArray[np.int32]:
        if hashes is None or not len(self):
            return np.full(n, NO_GROUP, np.int32)
        different = self._contents[0]
        at = np.minimum(np.searchsorted(different, hashes), len(different) - 1)
        return np.where(different[at] == hashes, at, NO_GROUP).astype(np.int32)


def unit_length(points: NDArray[Any]) -> NDArray[np.float32]:
    """Points of length 1; zeros stay as they are."""
    if points.ndim != 2:
        raise DataError(f"points must be of shape (n, d), got {points.shape}")
    made = np.empty(points.shape, np.float32)
    for start in range(0, len(points), _POOL_AT_ONCE):
        some = points[start : start + _POOL_AT_ONCE].astype(np.float64)
        lengths = np.linalg.norm(some, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise DataError("points must be numbers, got NaN or infinity; look for vectors that overflow")
        made[start : start + _POOL_AT_ONCE] = np.divide(some, lengths, out=some, where=lengths > 0)
    return made


def exact_search(
    pool: NDArray[np.float32],
    points: NDArray[np.float32],
    k: int,
    pool_groups: NDArray[np.int32],
    groups: NDArray[np.int32],
    advance: Advance,
    engine: LocalEngine,
) -> Neighbours:
    """See `Search`: on the cores of `engine`, block of texts by block."""
    found = Neighbours(np.full((len(points), k), NO_TEXT, np.int32), np.full((len(points), k), -np.inf, np.float32))

    def fill(start: int) -> int:
        own = slice(start, start + _TEXTS_AT_ONCE)
        texts, cosines = found.texts[own], found.cosines[own]
        for first in range(0, len(pool), _POOL_AT_ONCE):
            block = slice(first, first + _POOL_AT_ONCE)
            some = points[own] @ pool[block].T  # (n_own, n_block)
            if (groups[own] >= 0).any():
                some[groups[own, None] == pool_groups[None, block]] = -np.inf
            _merge(texts, cosines, some, first)
        return len(texts)

    for n in engine.map(fill, range(0, len(points), _TEXTS_AT_ONCE)):
        advance(n)
    return found


def _merge(texts: NDArray[np.int32], cosines: NDArray[np.float32], some: NDArray[np.float32], first: int) -> None:
    """Put what is better in `some` (n, n_block), texts from `first` on, among the k best so far."""
    k = texts.shape[1]
    bar = cosines[:, -1:]  # a later text must be better than the last one: ties go to the smaller number
    if some.shape[1] > k and np.isneginf(bar).any():
        own = np.partition(some, -k, axis=1)[:, -k, None]
        bar = np.maximum(bar, np.nextafter(own, np.float32(-np.inf)))
    rows, columns = np.nonzero(some > bar)
    if not len(rows):
        return
    counts = np.bincount(rows, minlength=len(texts))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    shape = len(texts), k + int(counts.max())
    candidates, scores = np.full(shape, NO_TEXT, np.int32), np.full(shape, -np.inf, np.float32)
    candidates[:, :k], scores[:, :k] = texts, cosines
    candidates[rows, k + place], scores[rows, k + place] = first + columns, some[rows, columns]
    best = top_k(candidates, scores, k)
    texts[:], cosines[:] = best.labels, best.scores
