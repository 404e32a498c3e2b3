"""The terms of one block of features: counted span by span, merged, and cut down to the features.

    texts         ->  TermCounter: ids and counts of terms, numbered as they appear
    TermCounters  ->  one TermCounter that has absorbed the others
    TermCounter   ->  TermTable: the terms that are kept, by falling document frequency, ties by term;
                      and the feature of each term of the counter, -1 if it is dropped

The numbers of features depend neither on spans nor on threads, and frequent terms lie side by side,
so that looking them up stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.errors import DataError
from longtail.kernels.characters import character_chart
from longtail.kernels.native.tokens import add_terms, count_terms
from longtail.mapped_arrays import Arrays
from longtail.text.columns import Bytes, bytes_of
from longtail.text.fields import FieldOptions
from longtail.text.stopwords import STOP_WORDS

Table = tuple[NDArray[np.int32], NDArray[np.uint64]]
"""Slots of an open-addressing hash table (a term's id, or -1), and the hash of each id."""

Counted = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]
"""Terms of some texts: indptr (n_texts + 1,), ids, counts."""

NO_WORDS: Table = (np.full(1, -1, np.int32), np.empty(0, np.uint64))
_UNLIMITED = 1 << 62
_FIRST_TERMS = 1 << 12
_NO_INT64, _NO_BYTES = np.empty(0, np.int64), np.empty(0, np.uint8)


class Analysis:
    """What a block makes of a text, as arguments of `count_terms`."""

    def __init__(self, options: FieldOptions, stop_words: Table) -> None:
        low, high = options.ngrams
        self.stop_words = stop_words
        self._kind = character_chart(options.lowercase), options.chars is not None, low, high, options.numbers

    def arguments(self, max_words: int | None) -> tuple[Any, ...]:
        """For texts of which so many words are read."""
        return *self._kind, max_words or _UNLIMITED, *self.stop_words

    @classmethod
    def of(cls, options: FieldOptions) -> Analysis:
        """From options; stop words are tokenised like texts."""
        words = STOP_WORDS[options.stop_words] if isinstance(options.stop_words, str) else options.stop_words
        if not words:
            return cls(options, NO_WORDS)
        alone = options.model_copy(update={"words": (1, 1), "stop_words": None})
        counter = TermCounter(cls(alone, NO_WORDS))
        counter.count(bytes_of(pa.chunked_array([words], pa.string()), range(len(words)), options.lowercase))
        return cls(options, counter.table)


class TermCounter:
    """The terms that were seen so far; there is room for `n_terms` of them before it must grow."""

    def __init__(self, analysis: Analysis, n_terms: int = _FIRST_TERMS) -> None:
        self.analysis = analysis
        self.n_terms = 0
        self.slots = np.empty(0, np.int32)
        self.hashes = np.empty(0, np.uint64)
        self.df, self.tf = np.empty(0, np.int64), np.empty(0, np.int64)
        self.ends = np.empty(0, np.int64)
        self.place = np.empty(0, np.int32)
        self.letters = np.empty(8 * n_terms, np.uint8)
        self._make_room(n_terms)

    def count(self, texts: Bytes, max_words: int | None = None) -> Counted:
        """Count the terms of some texts, of `max_words` words each; new ones are added."""
        data, offsets = texts
        counts: list[Counted] = []
        while True:
            *counted, self.n_terms = count_terms(
                data, offsets, *self.analysis.arguments(max_words), True, self.n_terms, self.slots, self.hashes,
                self.place, self.df, self.tf, self.ends, self.letters,
            )  # fmt: skip
            counts.append(tuple(counted))
            offsets = offsets[len(counted[0]) - 1 :]
            if len(offsets) == 1:
                return stacked(counts)
            if self.n_terms == len(self.hashes):
                self._make_room(self.n_terms * 3 // 2)
            else:
                self.letters.resize(len(self.letters) * 3 // 2, refcheck=False)

    def found(self) -> dict[str, NDArray[Any]]:
        """Return all terms as arrays that another counter can absorb."""
        names = ("hashes", "df", "tf", "ends")
        n_letters = int(self.ends[self.n_terms - 1]) if self.n_terms else 0
        return {**{name: getattr(self, name)[: self.n_terms] for name in names}, "letters": self.letters[:n_letters]}

    def absorb(self, other: Arrays) -> NDArray[np.int32]:
        """Add the terms that another counter found; return their ids here."""
        n_terms, n_other = self.n_terms, len(other["hashes"])
        ids = np.empty(n_other, np.int32)
        self._make_room(n_terms + n_other)
        self.n_terms = add_terms(other["hashes"], n_terms, self.slots, self.hashes, ids)
        self.df[ids] += other["df"]
        self.tf[ids] += other["tf"]
        new = _strings_of(other["ends"], other["letters"]).filter(pa.array(ids >= n_terms))
        start = int(self.ends[n_terms - 1]) if n_terms else 0
        self.ends[n_terms : self.n_terms] = start + np.cumsum(np.asarray(pc.binary_length(new), np.int64))
        stop = int(self.ends[self.n_terms - 1]) if self.n_terms else 0
        if stop > len(self.letters):
            self.letters.resize(max(stop, len(self.letters) * 3 // 2), refcheck=False)
        self.letters[start:stop] = np.frombuffer(new.buffers()[2] or b"", np.uint8)[: stop - start]
        return ids

    @property
    def table(self) -> Table:
        """The hash table of these terms."""
        return self.slots, self.hashes[: self.n_terms]

    @property
    def terms(self) -> pa.LargeStringArray:
        """All terms, by id."""
        return _strings_of(self.ends[: self.n_terms], self.letters)

    def _make_room(self, n_terms: int) -> None:
        # Nobody holds a view, so large arrays may grow without being copied.
        for array in (self.hashes, self.df, self.tf, self.ends, self.place):
            array.resize(max(n_terms, len(array)), refcheck=False)
        if len(self.slots) < _n_slots(n_terms):
            self.slots = slots_of(self.hashes[: self.n_terms], _n_slots(n_terms))


@dataclass(frozen=True, eq=False)
class TermTable:
    """The terms of one block that are features, for looking up."""

    analysis: Analysis
    table: Table

    @property
    def n_terms(self) -> int:
        """How many."""
        return len(self.table[1])

    def count(self, texts: Bytes, place: NDArray[np.int32], max_words: int | None = None) -> Counted:
        """Count the terms of some texts that are features; `place` is scratch of (n_terms,)."""
        slots, hashes = self.table
        return count_terms(  # type: ignore[no-any-return]
            *texts, *self.analysis.arguments(max_words), False, self.n_terms, slots, hashes, place,
            _NO_INT64, _NO_INT64, _NO_INT64, _NO_BYTES,
        )[:3]  # fmt: skip


def stacked(counted: Sequence[Counted]) -> Counted:
    """Return counted terms, one below the other."""
    if len(counted) == 1:
        return counted[0]
    ends = np.cumsum([0, *(indptr[-1] for indptr, _, _ in counted)], dtype=np.int64)
    indptr = [one[0][1:] + end for one, end in zip(counted, ends[:-1], strict=True)]
    ids, counts = (np.concatenate([one[array] for one in counted]) for array in (1, 2))
    return np.concatenate([ends[:1], *indptr]), ids, counts


def slots_of(hashes: NDArray[np.uint64], n_slots: int) -> NDArray[np.int32]:
    """Return a table of terms 0, 1, ... by hash."""
    slots = np.full(n_slots, -1, np.int32)
    add_terms(hashes, 0, slots, np.empty_like(hashes), np.empty(len(hashes), np.int32))
    return slots


def choose_terms(
    counter: TermCounter, options: FieldOptions, n_texts: int
) -> tuple[TermTable, pa.LargeStringArray, NDArray[np.int64], NDArray[np.int32]]:
    """Return the features, their terms and document frequencies, and the feature of each term of the counter."""
    n_terms = counter.n_terms
    df, tf = counter.df[:n_terms], counter.tf[:n_terms]
    kept = np.flatnonzero(_frequent(df, options, n_texts))
    terms = counter.terms.take(pa.array(kept))
    order = np.arange(len(kept))
    if options.max_features is not None:
        order = _by_falling(tf[kept], terms)[: options.max_features]
    order = order[_by_falling(df[kept[order]], terms.take(pa.array(order)))]
    kept, terms = kept[order], terms.take(pa.array(order))

    features = np.full(n_terms, -1, np.int32)
    features[kept] = np.arange(len(kept), dtype=np.int32)
    hashes = counter.hashes[kept]
    table = TermTable(counter.analysis, (slots_of(hashes, _n_slots(len(kept))), hashes))
    return table, terms, df[kept], features


def _frequent(df: NDArray[Any], options: FieldOptions, n_texts: int) -> NDArray[np.bool_]:
    """Which terms are neither too rare nor too frequent."""
    if not len(df):
        words = " but stop words" if options.stop_words else ""
        raise DataError(f"texts must hold terms to make features of, got none{words} ({options}); choose other fields")
    min_df: float = (2 if df.max() >= 2 else 1) if options.min_df == "auto" else options.min_df
    lowest = min_df * n_texts if isinstance(min_df, float) else min_df
    highest = options.max_df * n_texts if isinstance(options.max_df, float) else options.max_df
    rare, common = df < lowest, df > highest
    if (rare | common).all():
        raise DataError(
            f"none of {len(df):,} terms is left ({options}): min_df={options.min_df} drops {rare.sum():,} of them, "
            f"max_df={options.max_df} {common.sum():,}; lower min_df or raise max_df"
        )
    return ~(rare | common)


def _strings_of(ends: NDArray[np.int64], letters: NDArray[np.uint8]) -> pa.LargeStringArray:
    """Return the strings that lie one after the other in `letters` as an Arrow array."""
    return pa.LargeStringArray.from_buffers(len(ends), pa.py_buffer(np.append(0, ends)), pa.py_buffer(letters))


def _by_falling(frequency: NDArray[Any], terms: pa.LargeStringArray) -> NDArray[np.int64]:
    """Positions by falling frequency, ties by term."""
    table = pa.table({"frequency": frequency, "term": terms})
    return np.asarray(pc.sort_indices(table, [("frequency", "descending"), ("term", "ascending")]), np.int64)


def _n_slots(n_terms: int) -> int:
    """Return a power of two, at least twice as many: chains stay short."""
    return 1 << (2 * n_terms - 1).bit_length()
