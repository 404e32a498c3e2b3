"""Words as light stems, so that a name is found in whichever form a text has it.

    stems = Stems(("en", "de"), names)          the stems of all words of the names, by language
    stems.language_of(words)               ->   number of the language that a text is in, by its function words
    stems.codes(words, language)           ->   ids of stems; UNKNOWN for a word of no name; nothing for a function word

Each language has ids of its own, so names are listed once per language and a text meets only the forms of its own.
Stems are light: plural and case endings go, suffixes that change the meaning stay. English: -ies, -es, -s. German:
umlauts are folded, then endings of declension are cut. A German word that no name has is split where all of its parts
are words of names; the codes of parts are below UNKNOWN.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtail.text.stopwords import STOP_WORDS

Language: TypeAlias = Literal["en", "de", "other"]
"""`other` takes words as they are, in lower case."""

UNKNOWN = -1
"""The code of a word that no name has."""
_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_FOLDED = str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})
_LINKS = ("", "s", "es", "n", "en", "er", "e")
"""What may stand between the parts of a German compound."""
_SHORTEST_PART = 4
_MOST_PARTS = 3
_FIRST_WORDS = 60
"""So many words tell the language of a text."""


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; hyphens part words, and `'s` is left out."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if "'" in text or "’" in text:
        text = _POSSESSIVE.sub("", text)
    return _WORD.findall(text.lower())


def stem_english(word: str) -> str:
    """Return an English word without the ending of its plural, and without -e after s: gas, gases, base, bases."""
    if len(word) <= 3:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y" if len(word) > 4 else word
    if word.endswith(("xes", "ses", "shes", "ches", "zes")):
        return word[:-2]
    if word.endswith("se"):
        return word[:-1]
    return word if word[-1] != "s" or word[-2] in "sui" else word[:-1]


def stem_german(word: str) -> str:
    """Return a German word without umlauts and without up to two endings of declension."""
    word = word.translate(_FOLDED)
    for _ in range(2):
        if len(word) > 5 and word.endswith(("en", "er", "em", "es", "rn")):
            word = word[:-2]
        elif len(word) > 4 and word[-1] in "ensm":
            word = word[:-1]
    return word


_STEM: dict[Language, Callable[[str], str]] = {"en": stem_english, "de": stem_german, "other": str}
_FUNCTION_WORDS: dict[Language, frozenset[str]] = {
    "en": frozenset((*STOP_WORDS["english"], "a")),
    "de": frozenset(STOP_WORDS["german"]),
    "other": frozenset(),
}


class Stems:
    """The stems of the words of names, and how words of texts become their ids."""

    def __init__(self, languages: Sequence[Language], stems: Sequence[Iterable[str]]) -> None:
        """`stems` are those of each language; use `of_names` to make them."""
        self.languages, self.stems = tuple(languages), [tuple(some) for some in stems]
        *self._starts, self.n_ids = accumulate(map(len, self.stems), initial=0)
        self._forms = [
            _Forms(name, {stem: number for number, stem in enumerate(some, start)})
            for name, some, start in zip(self.languages, self.stems, self._starts, strict=True)
        ]
        only = [_FUNCTION_WORDS[name] for name in self.languages]
        # A word that is one in two languages, such as `die` or `in`, tells nothing.
        self._telling = [words.difference(*only[:i], *only[i + 1 :]) for i, words in enumerate(only)]

    @classmethod
    def of_names(cls, languages: Sequence[Language], names: Iterable[Sequence[str]]) -> Stems:
        """Return the stems of names, which are given as words."""
        forms = sorted(set(chain.from_iterable(names)))
        kept = ((word for word in forms if word not in _FUNCTION_WORDS[language]) for language in languages)
        return cls(languages, [sorted(set(map(_STEM[name], some))) for name, some in zip(languages, kept, strict=True)])

    def language_of(self, words: Sequence[str]) -> int:
        """Return the number of the language of which a text has most function words; the first where several lead."""
        if len(self.languages) == 1:
            return 0
        first = words[:_FIRST_WORDS]
        counts = [sum(map(telling.__contains__, first)) for telling in self._telling]
        return counts.index(max(counts))

    def stem_of(self, code: int) -> str:
        """Return the stem with an id."""
        language = bisect(self._starts, code) - 1
        return self.stems[language][code - self._starts[language]]

    def codes(self, words: Iterable[str], language: int) -> NDArray[np.int32]:
        """Return the codes of words, one after the other; a compound has one for each part."""
        return np.fromiter(chain.from_iterable(map(self._forms[language].__getitem__, words)), np.int32)


class _Forms(dict[str, tuple[int, ...]]):
    """Word form → codes, worked out when a form is first met."""

    most = 1 << 20
    """Forms that are kept; texts may have any number of different ones."""

    def __init__(self, language: Language, ids: dict[str, int]) -> None:
        super().__init__()
        self.language, self.ids = language, ids
        self.stem = _STEM[language]

    def __missing__(self, form: str) -> tuple[int, ...]:
        if len(self) >= self.most:
            self.clear()
        codes = self[form] = self._codes(form)
        return codes

    def __reduce__(self) -> tuple[type[_Forms], tuple[Language, dict[str, int]]]:
        return _Forms, (self.language, self.ids)

    def _codes(self, form: str) -> tuple[int, ...]:
        if form in _FUNCTION_WORDS[self.language]:
            return ()
        number = self.ids.get(self.stem(form))
        if number is not None:
            return (number,)
        compound = self._parts(form, _MOST_PARTS) if self.language == "de" else None
        return (UNKNOWN,) if compound is None else tuple(map(part_code, compound))

    def _parts(self, word: str, most: int) -> tuple[int, ...] | None:
        """Return the ids of the parts of a compound, the longest last part first; None if some part is unknown."""
        for cut in range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1):
            last = self.ids.get(self.stem(word[cut:]))
            if last is None:
                continue
            for link in _LINKS:
                front = word[:cut].removesuffix(link)
                if len(front) < _SHORTEST_PART or len(front) + len(link) != cut:
                    continue
                first = self.ids.get(self.stem(front))
                if first is not None:
                    return first, last
                more = self._parts(front, most - 1) if most > 2 else None
                if more is not None:
                    return *more, last
        return None


def part_code(stem: int) -> int:
    """Return the code of a stem that is part of a compound."""
    return -2 - stem
