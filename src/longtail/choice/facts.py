"""What is known before training: about the data, from counts and a sample of the texts, and about the machine.

Split, Run  ->  DataFacts, MachineFacts: plain numbers, and one line about each for people
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Self

import numpy as np

from longtail.data.dataset import TEXT, Split
from longtail.data.vocabulary import Vocabulary
from longtail.options import Options
from longtail.run.resources import free_memory_bytes
from longtail.run.run import Run
from longtail.text.stems import Language, stem_english, stem_german, words_of
from longtail.text.stopwords import STOP_WORDS
from longtail.units import in_bytes

_SAMPLE = 500
"""Texts that are read for the facts."""
_TITLE = "title"
_BUSY = 1.5
"""A machine is busy from so many jobs per thread on."""
_SPOKEN, _TOLD = 0.1, 0.3
"""A language counts from this share of the texts on; languages are told from this share with function words on."""
_LANGUAGES: dict[Language, str] = {"en": "English", "de": "German", "other": "another language"}
_ENGLISH, _GERMAN = (frozenset(STOP_WORDS[language]) for language in ("english", "german"))
_TELLING: dict[Language, frozenset[str]] = {"en": _ENGLISH - _GERMAN, "de": _GERMAN - _ENGLISH}


class DataFacts(Options):
    """What is in the training data."""

    n_texts: int
    n_labels: int
    """Labels that have a text."""
    n_labels_without_texts: int
    labels_per_text: float
    words_per_text: float
    """Of the median text, title and text together; 0 where data came as features without texts."""
    languages: tuple[Language, ...]
    """Those of at least a tenth of the texts, most frequent first, told by function words."""
    has_names: bool
    """Whether labels are called otherwise than by their ids, and by letters."""
    named_in_texts: float
    """Share of the assigned labels of which a name occurs in the text."""
    has_hierarchy: bool

    @classmethod
    def about(cls, split: Split, seed: int = 0) -> Self:
        """Count the labels of a split, and read a sample of its texts."""
        counts, whole = split.labels.texts_per_label(), split.official or split.vocabulary
        n_labels = int(np.count_nonzero(counts))
        rows = np.sort(np.random.default_rng(seed).permutation(len(split))[:_SAMPLE])
        some = split.take(rows)
        words = [words_of(text) for text in _texts(some)] if split.has_texts else []
        return cls(
            n_texts=len(split),
            n_labels=n_labels,
            n_labels_without_texts=max(len(whole), len(counts)) - n_labels,
            labels_per_text=float(split.labels.labels_per_text().mean()),
            words_per_text=float(np.median([len(one) for one in words])) if words else 0.0,
            languages=_languages(words),
            has_names=_has_names(split.vocabulary),
            named_in_texts=_named_in_texts(words, some) if words else 0.0,
            has_hierarchy=any(map(len, whole.table["parents"].to_pylist())),
        )

    def __str__(self) -> str:
        if self.words_per_text:
            spoken = " and ".join(_LANGUAGES[language] for language in self.languages)
            texts = f"{self.words_per_text:,.0f} words in the median text, {spoken}"
        else:
            texts = "features without texts"
        without = f" ({self.n_labels_without_texts:,} more have no text)" if self.n_labels_without_texts else ""
        names = f"{self.named_in_texts:.0%} of the assigned labels are named in their text"
        return (
            f"{self.n_texts:,} texts, {self.n_labels:,} labels{without}, {self.labels_per_text:.1f} per text; {texts}; "
            f"{names if self.has_names else 'labels have no names'}; {'a' if self.has_hierarchy else 'no'} hierarchy"
        )


class MachineFacts(Options):
    """What training may use."""

    n_threads: int
    free_memory_bytes: int | None
    """None where it cannot be told."""
    load: float | None = None
    """How many jobs, of all programs, wanted to run at once in the last minute; None where it cannot be told."""
    has_gpu: bool
    """One that torch, if it is installed, probably can use."""
    has_torch: bool

    @classmethod
    def about(cls, run: Run) -> Self:
        """Look at this machine; nothing large is imported."""
        return cls(
            n_threads=run.engine.n_threads,
            free_memory_bytes=free_memory_bytes(),
            load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
            has_gpu=any(Path("/dev").glob("nvidia[0-9]*")) and os.environ.get("CUDA_VISIBLE_DEVICES") not in ("", "-1"),
            has_torch=find_spec("torch") is not None and find_spec("transformers") is not None,
        )

    def __str__(self) -> str:
        free = "" if self.free_memory_bytes is None else f", {in_bytes(self.free_memory_bytes)} of memory free"
        threads = f"{self.n_threads} thread{'s' if self.n_threads > 1 else ''}"
        busy = ""
        if self.load is not None and self.load > _BUSY * self.n_threads:
            busy = f"; busy with other work (load {self.load:.0f}), so everything is expected to take longer"
        return f"{threads}{free}, {'a' if self.has_gpu else 'no'} GPU{busy}"


def _texts(split: Split) -> Iterable[str]:
    """Yield the texts, each behind its title if there is one."""
    columns = [split.texts[name].to_pylist() for name in (_TITLE, TEXT) if name in split.texts.column_names]
    return map(" ".join, zip(*columns, strict=True))


def _languages(words: Sequence[Sequence[str]]) -> tuple[Language, ...]:
    """Return the languages of texts; `other` where few texts have a function word of those that are known."""
    counts = dict.fromkeys(_TELLING, 0)
    for some in words:
        n_telling = {language: sum(map(telling.__contains__, some)) for language, telling in _TELLING.items()}
        best = max(n_telling, key=lambda language: n_telling[language])
        counts[best] += n_telling[best] > 0
    n_told = sum(counts.values())
    if n_told < _TOLD * len(words) or not words:
        return ("other",)
    most = sorted(counts, key=lambda language: -counts[language])
    return tuple(language for language in most if counts[language] >= _SPOKEN * n_told)


def _has_names(vocabulary: Vocabulary) -> bool:
    return any(
        name != label and any(map(str.isalpha, name))
        for label, name in zip(vocabulary.ids, vocabulary.names, strict=True)
    )


def _named_in_texts(words: Sequence[Sequence[str]], split: Split) -> float:
    """Return the share of assigned labels one of whose names has all of its words in the text, up to their endings."""
    names = split.vocabulary.table.select(["name", "alternatives"])
    n_named = 0
    for row, some in enumerate(words):
        stems = {stem(word) for stem in (stem_english, stem_german) for word in some}
        for name, others in zip(*(column.to_pylist() for column in names.take(split.labels[row])), strict=True):
            n_named += any(_occurs(each, stems) for each in (name, *others))
    return n_named / max(len(split.labels.indices), 1)


def _occurs(name: str, stems: set[str]) -> bool:
    words = words_of(name.partition("(")[0])
    return bool(words) and any(all(stem(word) in stems for word in words) for stem in (stem_english, stem_german))
