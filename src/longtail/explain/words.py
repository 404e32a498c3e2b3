"""The different words of a text, with their places: what explanations give weights to.

    TextWords.of({"title": …, "text": …})  ->  words in lower case (n_words), each with all of its places
    words.without([3, 7])                  ->  the fields without these words

A word is a run of letters, digits or underscores; whatever else stands between blanks alone is one too, so that every
character that a method may read lies in a word or beside one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longtail.explain.explanation import Span, Word

_WORD = re.compile(r"\w+|(?<!\S)[^\w\s]+(?!\S)")


@dataclass(frozen=True, eq=False)
class TextWords:
    """The words of one text."""

    fields: Mapping[str, str]
    forms: tuple[str, ...]  # (n_words,) in the order in which they appear
    spans: tuple[tuple[Span, ...], ...]  # (n_words,)

    @classmethod
    def of(cls, fields: Mapping[str, str]) -> TextWords:
        """Return the words of the fields of a text."""
        places: dict[str, list[Span]] = {}
        for name, text in fields.items():
            for match in _WORD.finditer(text):
                places.setdefault(match[0].lower(), []).append(Span(name, match.start(), match.end()))
        return cls(dict(fields), tuple(places), tuple(map(tuple, places.values())))

    def __len__(self) -> int:
        return len(self.forms)

    @cached_property
    def word_of_character(self) -> dict[str, NDArray[np.int32]]:
        """The word that each character of a field lies in, −1 outside of words."""
        charts = {name: np.full(len(text), -1, np.int32) for name, text in self.fields.items()}
        for word, spans in enumerate(self.spans):
            for field, start, end in spans:
                charts[field][start:end] = word
        return charts

    def without(self, words: Collection[int]) -> dict[str, str]:
        """Return the fields without some words."""
        gone: dict[str, list[tuple[int, int]]] = {}
        for word in words:
            for field, start, end in self.spans[word]:
                gone.setdefault(field, []).append((start, end))
        return {name: _without(text, sorted(gone.get(name, ()))) for name, text in self.fields.items()}

    def weighted(self, weights: NDArray[np.float64]) -> tuple[Word, ...]:
        """Return the words with weights (n_words,) other than 0, the largest first, ties by their order in the text."""
        order = np.argsort(-weights, kind="stable")
        return tuple(
            Word(self.forms[word], float(weights[word]), self.spans[word]) for word in order.tolist() if weights[word]
        )


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    pieces, at = [], 0
    for start, end in spans:
        pieces.append(text[at:start])
        at = end
    return "".join([*pieces, text[at:]])
