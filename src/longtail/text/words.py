"""Words as tokens: for encoders that have one vector per word.

    texts (n_texts,)  ->  words, most frequent first  ->  ids: 0 padding, 1 any other word, 2 + rank of the word

A word is a run of letters and digits with apostrophes and hyphens inside, in lower case. Endings like 's and n't are
words of their own, as they are in most files of word vectors. `/SEP/`, which some data have between the fields of a
text, stays as it is. Only words of training texts are counted, as far as those texts are read.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache, cached_property
from itertools import chain
from typing import Literal

import pyarrow as pa
from pydantic import PositiveInt

from longtail.errors import ConfigError, DataError, ModelFormatError
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.tokens import ExportedTokeniser, TokenOptions

PAD, UNKNOWN, FIRST_WORD = 0, 1, 2
"""The ids of padding, of words outside the vocabulary, and of the most frequent word."""
SEPARATOR = "/SEP/"

_TEXTS_AT_ONCE = 1024
_ENDING = "'(?i:s|m|d|ll|re|ve)"
_INSIDE = re.compile(rf"(?<=\w)((?i:n't)|{_ENDING})\b")
_COLUMN = "word"


class WordOptions(Options):
    """Which words have an id of their own."""

    max_words: PositiveInt = 500_000
    """At most so many words, those of the most texts."""
    min_df: PositiveInt | Literal["auto"] = "auto"
    """Leave out words of fewer texts; they are read as the unknown word, whose vector is trained on them. `auto` is 2,
    or 1 if no word occurs in two texts."""


class WordTokeniser:
    """Turns texts into the ids of their words."""

    pad_id = PAD

    def __init__(self, words: Sequence[str], max_tokens: int) -> None:
        self.words = tuple(words)
        self.max_tokens = max_tokens
        self.n_ids = FIRST_WORD + len(self.words)
        self._ids = {word: number for number, word in enumerate(self.words, FIRST_WORD)}

    @classmethod
    def learn(
        cls, texts: pa.Table, tokens: TokenOptions, options: WordOptions, run: Run | None = None
    ) -> WordTokeniser:
        """Return a tokeniser with the words of training texts."""
        run = run or Run()
        if not set(tokens.columns) & set(texts.column_names):
            known = ", ".join(texts.column_names)
            raise ConfigError(f"tokens.columns must name a column of the texts ({known}), got {tokens.columns}")
        frequency: Counter[str] = Counter()
        with run.progress.step("words", len(texts), "texts") as advance:
            for start in range(0, len(texts), _TEXTS_AT_ONCE):
                some = tokens.read(texts.slice(start, _TEXTS_AT_ONCE))
                frequency.update(chain.from_iterable(set(words_of(text)[: tokens.max_tokens]) for text in some))
                advance(len(some))
        return cls(_most_frequent(frequency, options), tokens.max_tokens)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the words and the limit; equal ones give the same ids."""
        return hashlib.blake2b("\n".join((f"words {self.max_tokens}", *self.words)).encode()).hexdigest()

    def encode(self, texts: Sequence[str]) -> tuple[list[Sequence[int]], int]:
        """Return the ids of each text, cut to the limit, and how many were cut; no words make one unknown word."""
        rows: list[Sequence[int]] = []
        n_cut, limit, id_of = 0, self.max_tokens, self._ids.get
        for text in texts:
            words = words_of(text)
            n_cut += len(words) > limit
            rows.append([id_of(word, UNKNOWN) for word in words[:limit]] or [UNKNOWN])
        return rows, n_cut

    def places(self, text: str) -> list[tuple[int, int]] | None:
        """Return where each word of a text begins and ends in it; None where its characters are not in normal form."""
        normal = unicodedata.normalize("NFC", text).replace("’", "'").lower()
        if len(normal) != len(text):
            return None
        places: list[tuple[int, int]] = []
        at = 0
        for word in words_of(text)[: self.max_tokens]:
            at = normal.index(word.lower(), at)
            places.append((at, at + len(word)))
            at += len(word)
        return places or [(0, 0)]

    def encode_names(self, names: Sequence[str]) -> list[Sequence[int]]:
        """Return the ids of the words of names; words without an id are left out."""
        return [[self._ids[word] for word in words_of(name) if word in self._ids] for name in names]

    def exported(self) -> ExportedTokeniser:
        """Return the words, one per line, and the patterns that find them in a text."""
        facts = {
            "kind": "words",
            "file": "words.txt",
            "pad_id": PAD,
            "unknown_id": UNKNOWN,
            "first_id": FIRST_WORD,
            "max_tokens": self.max_tokens,
            "separator": SEPARATOR,
            "inside": _INSIDE.pattern,
            "word": _pattern().pattern,
        }
        return ExportedTokeniser(facts, "\n".join(self.words))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.table(name, pa.table({_COLUMN: pa.array(self.words, pa.string())}))
        writer.manifest[name] = {"max_tokens": self.max_tokens}

    @classmethod
    def load(cls, folder: Folder, name: str) -> WordTokeniser:
        """Open what `save` wrote."""
        words, most = folder.table(name), folder.manifest[name]["max_tokens"]
        right = words.schema.equals(pa.schema({_COLUMN: pa.string()})) and not words[_COLUMN].null_count
        if not right or type(most) is not int or most < 1:
            raise ModelFormatError(f"{folder.path}, {name}: words must be texts and max_tokens above 0; train it anew")
        return cls(words[_COLUMN].to_pylist(), most)


def words_of(text: str) -> list[str]:
    """Return the words of a text, in order."""
    text = unicodedata.normalize("NFC", text)
    if "’" in text:
        text = text.replace("’", "'")
    if "'" in text:
        text = _INSIDE.sub(r" \1", text)
    # Lowered all at once, which is much faster; and only now, because `/sep/` in a text is not the separator.
    words = "\n".join(_pattern().findall(text)).lower().split("\n")
    if SEPARATOR in text:
        return [SEPARATOR if word == "/sep/" else word for word in words]
    return words if words[0] else []


@cache
def _pattern() -> re.Pattern[str]:
    r"""Return the pattern of words: `\w` and combining marks, which Indian languages have inside words."""
    marks = "".join(chr(code) for code in range(0x300, 0x10000) if unicodedata.category(chr(code))[0] == "M")
    letter = rf"[\w{marks}]"
    return re.compile(rf"{letter}++(?:['-]{letter}++)*+|{SEPARATOR}|(?<!\w){_ENDING}\b")


def _most_frequent(frequency: Counter[str], options: WordOptions) -> list[str]:
    """Return the words that get an id, by falling document frequency, ties by word."""
    if not frequency:
        raise DataError("training texts must hold words, got none; choose other tokens.columns")
    highest = max(frequency.values())
    lowest = min(2, highest) if options.min_df == "auto" else options.min_df
    if highest < lowest:
        raise DataError(
            f"none of {len(frequency):,} words is left: words.min_df is {lowest:,}, "
            f"but the most frequent one is in {highest:,} texts; lower it"
        )
    kept = [word for word, df in frequency.items() if df >= lowest]
    return sorted(kept, key=lambda word: (-frequency[word], word))[: options.max_words]
