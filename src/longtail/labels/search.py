"""Find labels by any of their names, as people type them: by their beginnings, and with typing errors.

    LabelSearch(vocabulary, train_counts).find("indstrie", 10)  ->  LabelHit: label, the name that fits, how well

Names are compared without capitals and accents. First come names that are what was typed, then those that begin with
it, that have a word which begins with it, that hold it anywhere, and last those that look like it: they share letter
triples with it. Within each kind, labels with more training texts come first.
"""

from __future__ import annotations

import threading
import unicodedata
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.arrow import string_array
from longtail.data.vocabulary import Vocabulary

_LEAST_SIMILAR = 0.3
"""Share of letter triples that names have in common, at least (Dice)."""
_N_CODES = 1 << 18
"""Triples of bytes are hashed to so many codes."""
_LONGEST = 200
"""Characters of a query that are read."""


class LabelHit(NamedTuple):
    """A label that fits."""

    label: int
    name: str
    """The name that fits: that of the label, or another one of it."""
    similarity: float
    """1 where the name holds what was typed, else the share of letter triples in common."""


class LabelSearch:
    """Finds labels by name. It may be used from several threads."""

    def __init__(self, vocabulary: Vocabulary, train_counts: NDArray[np.int64]) -> None:
        self.vocabulary, self.train_counts = vocabulary, train_counts
        self._lock = threading.Lock()

    def find(self, query: str, n: int = 20) -> list[LabelHit]:
        """Return up to `n` labels that fit a query, best first."""
        typed = " ".join(normalised(query[:_LONGEST]).split())
        if not typed or n < 1:
            return []
        ranks = self._ranks(typed)
        places = np.flatnonzero(ranks < len(_KINDS))
        similarity = np.ones(len(places))
        best = self._first_of_labels(places, ranks[places].astype(np.float64), similarity, n)
        if len(best) < n:
            similar, shares = self._similar(typed)
            others = self._first_of_labels(similar, -shares, shares, n)
            taken = {match.label for match in best}
            best += [match for match in others if match.label not in taken]
        return best[:n]

    @cached_property
    def _names(self) -> pa.ChunkedArray:
        """All names as people write them: those of the labels, then their alternatives."""
        table = self.vocabulary.table
        return pa.chunked_array(
            [*table["name"].chunks, *(pc.list_flatten(chunk) for chunk in table["alternatives"].chunks)], pa.string()
        )

    @cached_property
    def _label_of(self) -> NDArray[np.int32]:
        """The label of each name, (n_names,)."""
        labels = np.arange(len(self.vocabulary), dtype=np.int32)
        n_alternatives = pc.list_value_length(self.vocabulary.table["alternatives"]).to_numpy()
        return np.concatenate([labels, np.repeat(labels, n_alternatives)])

    @cached_property
    def _typed_names(self) -> pa.Array:
        """All names as they are compared."""
        return string_array([normalised(name).encode() for name in self._names.to_pylist()])

    @cached_property
    def _triples(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]:
        """The names with each triple: where those of a triple begin, the names, and the triples of each name."""
        names = self._typed_names
        ends = np.frombuffer(names.buffers()[1], np.int32)[: len(names) + 1]
        letters = np.frombuffer(names.buffers()[2], np.uint8) if names.buffers()[2].size else np.empty(0, np.uint8)
        # A blank at either end of each name, so that its ends count as letters.
        lengths = np.diff(ends)
        padded = np.full(int(lengths.sum() + 2 * len(names)), ord(" "), np.uint8)
        starts = ends[:-1] + 2 * np.arange(len(names))
        padded[np.repeat(starts + 1 - ends[:-1], lengths) + np.arange(len(letters))] = letters
        owner = np.repeat(np.arange(len(names), dtype=np.int64), lengths + 2)
        inside = owner[:-2] == owner[2:]
        pairs = np.unique(_codes(padded)[inside].astype(np.int64) * len(names) + owner[:-2][inside])
        code, name = np.divmod(pairs, max(len(names), 1))
        ptr = np.zeros(_N_CODES + 1, np.int64)
        np.cumsum(np.bincount(code, minlength=_N_CODES), out=ptr[1:])
        return ptr, name.astype(np.int32), np.bincount(name, minlength=len(names)).astype(np.int32)

    def _ranks(self, typed: str) -> NDArray[np.int64]:
        """Return how each name (n_names,) fits, the place of the kind in `_KINDS`; their number if it does not."""
        with self._lock:
            names = self._typed_names
        ranks = np.full(len(names), len(_KINDS))
        holding = np.flatnonzero(np.asarray(pc.match_substring(names, typed)))
        if len(holding):
            some = names.take(pa.array(holding))
            for rank, fits in reversed(list(enumerate(_KINDS))):
                ranks[holding[np.asarray(fits(some, typed))]] = rank
        return ranks

    def _similar(self, typed: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the names that look like what was typed, and the share of triples in common."""
        with self._lock:
            ptr, names, n_triples = self._triples
        letters = np.frombuffer(f" {typed} ".encode(), np.uint8)
        codes = np.unique(_codes(letters))
        if not len(codes):
            return np.empty(0, np.int64), np.empty(0)
        shared = np.bincount(
            np.concatenate([names[ptr[code] : ptr[code + 1]] for code in codes]), minlength=len(n_triples)
        )
        shares = 2 * shared / (n_triples + len(codes))
        similar = np.flatnonzero(shares >= _LEAST_SIMILAR)
        return similar, shares[similar]

    def _first_of_labels(
        self, places: NDArray[np.int64], order: NDArray[np.float64], similarity: NDArray[np.float64], n: int
    ) -> list[LabelHit]:
        """Return the first `n` labels by ascending `order`, then by training texts, each by the best of its names."""
        labels = self._label_of[places]
        chosen: dict[int, LabelHit] = {}
        for place in np.lexsort((places, -self.train_counts[labels], order)).tolist():
            label = int(labels[place])
            if label not in chosen:
                name = self._names[int(places[place])].as_py()
                chosen[label] = LabelHit(label, name, float(similarity[place]))
                if len(chosen) == n:
                    break
        return list(chosen.values())


_KINDS = (
    lambda names, typed: pc.equal(names, typed),
    lambda names, typed: pc.starts_with(names, typed),
    lambda names, typed: pc.match_substring(names, f" {typed}"),
    lambda names, typed: pc.match_substring(names, typed),
)
"""How a name may hold what was typed, best first."""


def normalised(text: str) -> str:
    """Return a text without capitals and accents."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def _codes(letters: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return the code of each three neighbouring bytes, (n - 2,)."""
    wide = letters.astype(np.int64)
    return (wide[:-2] * 0x9E3B + wide[1:-1] * 0x0101 + wide[2:] * 0x3F1D + ((wide[:-2] ^ wide[2:]) << 9)) % _N_CODES
