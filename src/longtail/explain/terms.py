"""Where the TF-IDF features of a text lie in it: which words each feature is made of.

    words of a text, vectoriser, features (n_features of the text)  ->  TermShares: (word, feature, share) triples

The shares of a feature sum to 1: over its occurrences, over the words of a word n-gram, and over the words that the
letters of a letter n-gram lie in. The terms are found as `kernels.reference.tokens` finds them, with their places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.errors import DataError
from longtail.explain.words import TextWords
from longtail.kernels.reference.tokens import words_of
from longtail.text.features import TextFeatures
from longtail.text.fields import FieldOptions
from longtail.text.stopwords import STOP_WORDS

Place = tuple[int, int]
_RUN, _TOKEN = re.compile(r"\w+"), re.compile(r"\S+")
_WIDENS = "İ"
"""The one letter that is two in lower case."""
_UNLIMITED = 1 << 62


@dataclass(frozen=True, eq=False)
class TermShares:
    """How much of each feature of a text belongs to which word."""

    words: NDArray[np.int64]  # (n_pairs,)
    features: NDArray[np.int64]  # (n_pairs,) places among the features of the text
    shares: NDArray[np.float64]  # (n_pairs,)
    n_words: int

    def of_words(self, contributions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each word contributes (n_words,), from what each feature does (n_features of the text,)."""
        sums = np.bincount(self.words, self.shares * contributions[self.features], self.n_words)
        return sums.astype(np.float64)


def term_shares(words: TextWords, vectoriser: TextFeatures, features: NDArray[np.int32]) -> TermShares:
    """Return the words of each of a text's features, which are ascending."""
    tfidf = vectoriser.tfidf
    if tfidf is None:
        raise DataError("only texts can be explained, and this model was trained on sparse features; train it on texts")
    columns = list(words.fields)
    pairs: dict[tuple[int, int], float] = {}
    for block, (start, stop) in zip(tfidf.options.blocks, tfidf.bounds_of_blocks(), strict=True):
        read = block.among(columns)
        first, last = np.searchsorted(features, (start, stop)).tolist()
        terms = tfidf.terms_.take(pa.array(features[first:last])).to_pylist()
        number = {term: first + at for at, term in enumerate(terms)}
        word_at = words.word_of_character[read.column]
        for term, places in places_of_terms(read, words.fields[read.column]):
            feature = number.get(term)
            if feature is None:
                continue
            for place in places:
                for word, share in _words_at(word_at, words.fields[read.column], place):
                    pairs[word, feature] = pairs.get((word, feature), 0.0) + share / len(places)
    at = np.array(list(pairs), np.int64).reshape(-1, 2)
    counts = np.fromiter(pairs.values(), np.float64, len(pairs))
    totals = np.bincount(at[:, 1], counts, len(features))  # occurrences of each feature
    return TermShares(at[:, 0], at[:, 1], counts / totals[at[:, 1]], len(words))


def places_of_terms(block: FieldOptions, text: str) -> Iterator[tuple[str, list[Place]]]:
    """Yield each term of a text, as the block reads it, with the places that it is made of."""
    lowered = text.lower() if block.lowercase else text
    for term, places in _letter_terms(block, lowered) if block.chars else _word_terms(block, lowered):
        yield term, places if len(lowered) == len(text) else [_narrowed(text, place) for place in places]


def _word_terms(block: FieldOptions, text: str) -> Iterator[tuple[str, list[Place]]]:
    most = block.max_words or _UNLIMITED
    runs: list[tuple[str, Place]] = []
    for match in _RUN.finditer(text):
        word = "0" if block.numbers and match[0].isdecimal() else match[0]
        if len(word) > 1 or (block.numbers and word == "0"):
            runs.append((word, match.span()))
        if len(runs) == most:
            break
    stop = _stop_words(block)
    runs = [run for run in runs if run[0] not in stop]
    low, high = block.ngrams
    for first in range(len(runs)):
        for n in range(low, min(high, len(runs) - first) + 1):
            some = runs[first : first + n]
            yield " ".join(word for word, _ in some), [place for _, place in some]


def _letter_terms(block: FieldOptions, text: str) -> Iterator[tuple[str, list[Place]]]:
    low, high = block.ngrams
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number == (block.max_words or _UNLIMITED):
            return
        letters, start, end = f" {match[0]} ", match.start(), match.end()
        if len(letters) < low:
            yield letters, [(start, end)]
        for first in range(len(letters)):
            here = min(max(start + first - 1, start), end - 1)  # a blank at either end belongs to the letter beside it
            for n in range(low, min(high, len(letters) - first) + 1):
                yield letters[first : first + n], [(here, max(min(start + first - 1 + n, end), here + 1))]


def _words_at(word_at: NDArray[np.int32], text: str, place: Place) -> Sequence[tuple[int, float]]:
    """Return the words that a place lies in, with their shares; those of the whole token if it lies in none."""
    start, end = place
    here = word_at[start:end]
    first = int(here[0]) if len(here) else -1
    if first >= 0 and bool((here == first).all()):
        return ((first, 1.0),)
    here = here[here >= 0]
    if not len(here):
        while start > 0 and not text[start - 1].isspace():
            start -= 1
        while end < len(text) and not text[end].isspace():
            end += 1
        here = word_at[start:end]
        here = here[here >= 0]
    some, counts = np.unique(here, return_counts=True)
    return list(zip(some.tolist(), (counts / len(here)).tolist(), strict=True))


def _narrowed(text: str, place: Place) -> Place:
    """Return a place in the lower-case text as one in the text itself."""
    bounds = [number for number, letter in enumerate(text) for _ in range(2 if letter == _WIDENS else 1)]
    return bounds[place[0]], bounds[place[1] - 1] + 1


@cache
def _stop_words(block: FieldOptions) -> frozenset[str]:
    """Return the words that a block leaves out, read as it reads texts."""
    words = STOP_WORDS[block.stop_words] if isinstance(block.stop_words, str) else block.stop_words or ()
    lowered = (word.lower() if block.lowercase else word for word in words)
    return frozenset(run for word in lowered for run in words_of(word, block.numbers, _UNLIMITED))
