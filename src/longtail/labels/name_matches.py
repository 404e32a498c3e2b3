"""Which labels' names occur in texts: the preferred and the alternative ones, in any form and order of their words.

    NameTable.of(vocabulary, options)  ->  the names of all labels, by the hashes of their stems
    table.match(texts)                 ->  NameMatches: the labels of each text, with facts about their matches

What stands in brackets at the end of a name, as in `Bank (Möbel)`, is its qualifier: it need not occur, but the share
of its words that the text has speaks for one homonym and against the others. No homonym is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.data.dataset import TEXT
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.kernels.native.names import hash_names, match_names
from longtail.kernels.native.tokens import add_terms
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.structure import Structure
from longtail.text.stems import UNKNOWN, Language, Stems, part_code, words_of

SPAN_TEXTS = 1024
"""Texts that are read at once."""
_QUALIFIER = re.compile(r"^(.*\S)\s*\(([^()]*)\)\s*$", re.DOTALL)


class NameOptions(Options):
    """How names are looked for in texts."""

    columns: tuple[str, ...] = Field((TEXT,), min_length=1)
    """The fields of a text that are read, one after the other."""
    title: str | None = "title"
    """A field that is read before them where texts have it: matches in a title count more."""
    title_words: PositiveInt = 12
    """Where there is no such field, so many first words stand for the title."""
    languages: tuple[Language, ...] = Field(("en", "de"), min_length=1)
    """Languages that texts may be in: a text is read in the one of which it has most function words. `other` is any
    language; its words must occur as they are."""
    most_words: int = Field(6, ge=1, le=20)
    """Names of more words are left out; function words do not count."""

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """Further columns that are read if texts have them."""
        return () if self.title is None else (self.title,)

    def options_for_fields(self, fields: str) -> dict[str, Any]:
        """Return plain options that read these fields (`title,text`) instead; the first of several is the title."""
        names = [name.strip() for name in fields.split(",")]
        if not all(names) or len(set(names)) < len(names):
            raise ConfigError(f"fields must be different column names, such as title,text; got '{fields}'")
        title, *rest = names if len(names) > 1 else (None, *names)
        return {"columns": rest, "title": title}


@dataclass(frozen=True, eq=False)
class NameMatches:
    """The labels whose names occur in each text, with facts about the matches."""

    indptr: NDArray[np.int64]  # (n_texts + 1,)
    labels: NDArray[np.int32]  # (n_matched,)
    names: NDArray[np.int32]  # (n_matched,) number of the name that matched with most words
    stats: NDArray[np.float32]  # (n_matched, n_stats) kernels.reference.names.STATS
    n_words: NDArray[np.int64]  # (n_texts,)
    languages: NDArray[np.int8]  # (n_texts,)

    probabilities: NDArray[np.float32] | None = None  # (n_matched,)

    def texts(self) -> NDArray[np.int64]:
        """Return the text of each match: (n_matched,)."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def names_once(self) -> NDArray[np.int64]:
        """Return the names that occur in each text, text by text, each once."""
        most = int(self.names.max(initial=0)) + 1
        return np.unique(self.texts() * most + self.names) % most


class NameTable:
    """The names of all labels of a vocabulary."""

    def __init__(self, options: NameOptions, stems: Stems, n_labels: int, arrays: dict[str, NDArray[Any]]) -> None:
        self.options, self.stems, self.n_labels, self.arrays = options, stems, n_labels, arrays
        for array in arrays.values():
            array.flags.writeable = False  # to the kernels, arrays that may be written are another type

    @classmethod
    def of(cls, vocabulary: Vocabulary, options: NameOptions) -> NameTable:
        """Return the table of a vocabulary; raise if no name has a letter."""
        names = [(label, kind, *_split(name)) for label, kind, name in _names(vocabulary)]
        if not any(any(map(str.isalpha, word)) for _, _, words, _ in names for word in words):
            raise DataError(
                "labels must have names to be found in texts, got only numbers; give a vocabulary with their names"
            )
        stems = Stems.of_names(options.languages, (words for _, _, *both in names for words in both))
        rows = [
            (label, kind, stems.codes(words, language), stems.codes(clues, language))
            for language in range(len(options.languages))
            for label, kind, words, clues in names
        ]
        rows = [row for row in rows if 0 < len(row[2]) <= options.most_words]
        labels, preferred = (np.array([row[at] for row in rows], np.int32) for at in (0, 1))
        ptr, codes = _flat([row[2] for row in rows])
        sums, orders = hash_names(codes, ptr)
        # One name per label and hash, a preferred one where there is one.
        order = np.lexsort((np.arange(len(rows)), 1 - preferred, labels, sums))
        repeated = (np.diff(sums[order]) == 0) & (np.diff(labels[order]) == 0)
        order = order[np.append(True, ~repeated)[: len(order)]]
        hashes, starts, numbers = np.unique(sums[order], return_index=True, return_inverse=True)
        letters = np.zeros(len(hashes), np.int32)
        letters[numbers] = [sum(len(stems.stem_of(code)) for code in rows[row][2]) for row in order.tolist()]
        clue_ptr, clues = _flat([rows[row][3] for row in order.tolist()])
        slots = np.full(1 << (2 * len(hashes) + 2).bit_length(), -1, np.int32)
        add_terms(hashes, 0, slots, np.empty_like(hashes), np.empty(len(hashes), np.int32))
        arrays = {
            "hashes": hashes,
            "slots": slots,
            "name_ptr": np.append(starts, len(order)).astype(np.int64),
            "name_labels": labels[order],
            "name_preferred": preferred[order],
            "name_orders": orders[order],
            "clue_ptr": clue_ptr,
            "clues": clues,
            "letters": letters,
        }
        return cls(options, stems, len(vocabulary), arrays)

    @property
    def n_names(self) -> int:
        """Number of different names."""
        return len(self.arrays["hashes"])

    def match(self, texts: pa.Table) -> NameMatches:
        """Return the matches of texts."""
        codes: list[NDArray[np.int32]] = []
        titles, languages = [], []
        for title, words in self._words(texts):
            language = self.stems.language_of(words)
            front = self.stems.codes(words[:title], language)
            codes += [front, self.stems.codes(words[title:], language)]
            titles.append(len(front))
            languages.append(language)
        ptr, flat = _flat(codes)
        ptr = ptr[::2].copy()
        arrays = self.arrays
        indptr, labels, numbers, stats = match_names(
            flat, ptr, np.array(titles, np.int64), self.options.most_words, arrays["hashes"], arrays["slots"],
            arrays["name_ptr"], arrays["name_labels"], arrays["name_preferred"], arrays["name_orders"],
            arrays["clue_ptr"], arrays["clues"], self.n_labels, self.stems.n_ids,
        )  # fmt: skip
        return NameMatches(indptr, labels, numbers, stats, np.diff(ptr), np.array(languages, np.int8))

    def words_of_names(
        self, vocabulary: Vocabulary, label: int, text: pa.Table, forms: Sequence[str]
    ) -> list[list[int]]:
        """Return the places among `forms`, words of one text, of each stem that names of a label have.

        A stem that no form has is left out.
        """
        language = self._language_of(text)
        of_names = {
            stem
            for name in _names_of(vocabulary, label)
            for words in _split(name)
            for stem in self._stems_of(words, language)
        }
        places: dict[int, list[int]] = {}
        for place, form in enumerate(forms):
            for stem in of_names.intersection(self._stems_of(words_of(form), language)):
                places.setdefault(stem, []).append(place)
        return list(places.values())

    def names_in(self, vocabulary: Vocabulary, label: int, text: pa.Table) -> tuple[str, ...]:
        """Return the names of a label that one text has as its longest match, mostly one; none without a match."""
        matches, language = self.match(text), self._language_of(text)
        numbers = matches.names[matches.labels == label]
        names = _names_of(vocabulary, label) if len(numbers) else []
        ptr, codes = _flat([self.stems.codes(_split(name)[0], language) for name in names])
        sums = hash_names(codes, ptr)[0]
        matched = self.arrays["hashes"][numbers]
        return tuple(name for name, total in zip(names, sums, strict=True) if total in matched)

    def _language_of(self, text: pa.Table) -> int:
        """Return the number of the language that one text is read in."""
        return self.stems.language_of(next(self._words(text))[1])

    def _stems_of(self, words: Sequence[str], language: int) -> set[int]:
        """Return the stems of words, those of the parts of compounds among them."""
        codes = self.stems.codes(words, language).tolist()
        return {code if code >= 0 else part_code(code) for code in codes if code != UNKNOWN}

    def _words(self, texts: pa.Table) -> Iterator[tuple[int, list[str]]]:
        """Yield how many words of each text are its title, and all its words."""
        columns = [texts[name].to_pylist() for name in self.options.columns if name in texts.column_names]
        title = self.options.title
        if title is None or title not in texts.column_names:
            for fields in zip(*columns, strict=True):
                yield self.options.title_words, words_of(" ".join(filter(None, fields)))
            return
        for first, *rest in zip(texts[title].to_pylist(), *columns, strict=True):
            front = words_of(first or "")
            yield len(front), front + words_of(" ".join(filter(None, rest)))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        stems = [(stem, number) for number, some in enumerate(self.stems.stems) for stem in some]
        columns = {"stem": pa.array([stem for stem, _ in stems], pa.string())}
        writer.table(f"{name}-stems", pa.table({**columns, "language": pa.array([n for _, n in stems], pa.int8())}))
        writer.arrays(name, self.arrays)

    @classmethod
    def load(cls, folder: Folder, name: str, options: NameOptions, n_labels: int) -> NameTable:
        """Open what `save` wrote."""
        table = folder.table(f"{name}-stems")
        stems, languages = table["stem"].to_pylist(), table["language"].to_numpy()
        ends = np.searchsorted(languages, np.arange(len(options.languages) + 1)).tolist()
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        in_order = bool((np.diff(languages) >= 0).all()) and ends[:1] == [0] and ends[-1] == len(stems)
        stored.require("stems", in_order, "be those of the languages, one after the other")
        groups = Stems(options.languages, [stems[start:end] for start, end in pairwise(ends)])
        return cls(options, groups, n_labels, _checked(stored, groups.n_ids, n_labels))


def _checked(stored: Structure, n_stems: int, n_labels: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a table; raise if kernels could read outside them, or look for a name without end."""
    hashes = stored.array("hashes", np.uint64)
    labels = stored.numbers("name_labels", np.int32, below=max(n_labels, 1))
    clues = stored.numbers("clues", np.int32, below=max(n_stems, 1))
    n = len(labels)
    slots = stored.numbers("slots", np.int32, below=max(len(hashes), 1), least=-1)
    is_table = len(slots) > 0 and not len(slots) & (len(slots) - 1) and int(slots.min()) < 0
    stored.require("slots", is_table, "be 2^n slots, some of them free")
    return {
        "hashes": hashes,
        "slots": slots,
        "name_ptr": stored.pointers("name_ptr", to=labels, n=len(hashes)),
        "name_labels": labels,
        "name_preferred": stored.numbers("name_preferred", np.int32, below=2, n=n),
        "name_orders": stored.array("name_orders", np.uint64, shape=(n,)),
        "clue_ptr": stored.pointers("clue_ptr", to=clues, n=n),
        "clues": clues,
        "letters": stored.numbers("letters", np.int32, below=2**31 - 1, n=len(hashes)),
    }


def _names(vocabulary: Vocabulary) -> Iterator[tuple[int, int, str]]:
    """Yield label, whether it is the preferred name, and name."""
    alternatives = vocabulary.table["alternatives"].to_pylist()
    for label, (name, others) in enumerate(zip(vocabulary.names, alternatives, strict=True)):
        yield label, 1, name
        for other in others:
            yield label, 0, other


def _names_of(vocabulary: Vocabulary, label: int) -> list[str]:
    """Return the preferred name of a label, then the others."""
    return [vocabulary.table["name"][label].as_py(), *vocabulary.alternatives(label)]


def _split(name: str) -> tuple[list[str], list[str]]:
    """Return the words of a name and those of its qualifier."""
    qualified = _QUALIFIER.match(name)
    core = words_of(qualified[1]) if qualified else []
    return (core, words_of(qualified[2])) if qualified and core else (words_of(name), [])


def _flat(rows: list[NDArray[np.int32]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    ptr = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return ptr, np.concatenate(rows) if rows else np.empty(0, np.int32)
