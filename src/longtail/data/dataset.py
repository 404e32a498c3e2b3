"""A data set: texts in Arrow tables, label sets as CSR, one vocabulary for all splits.

    Dataset.train / .dev / .test -> Split(texts: Arrow table (n_texts rows), labels: LabelMatrix)

A text may have several fields (title, text, ...), one Arrow column each; `text` is the main one. Texts
stay in Arrow, so a million of them fit where Python lists would not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.types import LabelMatrix

TEXT = "text"
"""The column that every table of texts has."""

Texts: TypeAlias = pa.Table | Sequence[str] | Mapping[str, Sequence[str]] | Sequence[Mapping[str, str]]
"""What may be given where texts are wanted: a table, texts, columns of texts, or rows of fields."""


@dataclass(frozen=True, eq=False)
class Split:
    """Texts with their labels."""

    texts: pa.Table  # string columns, `text` among them
    labels: LabelMatrix
    vocabulary: Vocabulary

    @classmethod
    def of(cls, texts: Texts, labels: Iterable[Iterable[str]], vocabulary: Vocabulary | None = None) -> Split:
        """Build from texts and label lists; without a vocabulary, the labels in sorted order make it."""
        table = as_table(texts)
        rows = [[labels_of] if isinstance(labels_of, str) else list(labels_of) for labels_of in labels]
        if len(rows) != table.num_rows:
            raise DataError(
                f"texts and labels must be as many, got {table.num_rows:,} texts and {len(rows):,} label lists"
            )
        found = sorted({str(label) for row in rows for label in row})
        vocabulary = Vocabulary.of(found) if vocabulary is None else vocabulary.extended(found)
        position = vocabulary.position
        matrix = LabelMatrix.from_lists(([position[str(label)] for label in row] for row in rows), len(vocabulary))
        return cls(table, matrix, vocabulary)

    def __len__(self) -> int:
        return int(self.texts.num_rows)

    def take(self, rows: NDArray[Any]) -> Split:
        """The given rows, in the given order."""
        return replace(self, texts=self.texts.take(pa.array(rows)), labels=self.labels.take(rows))

    def label_names(self, text: int) -> list[str]:
        """Names of the labels of one text."""
        return [self.vocabulary.names[label] for label in self.labels[text]]

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of texts, labels and label ids: tells whether a model saw these data."""
        digest = hashlib.sha256()
        for name in sorted(self.texts.column_names):
            digest.update(name.encode())
            for chunk in self.texts[name].chunks:
                for value in (np.asarray(chunk.value_lengths()), chunk.cast(pa.large_binary())):
                    digest.update(_visible_bytes(value))
        digest.update(self.labels.indptr.tobytes() + self.labels.indices.tobytes())
        digest.update("\n".join(self.vocabulary.ids).encode())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Dataset:
    """Named splits over one vocabulary."""

    name: str
    splits: Mapping[str, Split]
    vocabulary: Vocabulary
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Where it came from, and what a split was held out with."""

    @property
    def train(self) -> Split:
        """The training texts."""
        return self.split("train")

    @property
    def dev(self) -> Split:
        """The texts for choices."""
        return self.split("dev")

    @property
    def test(self) -> Split:
        """The texts to be read once."""
        return self.split("test")

    def split(self, name: str) -> Split:
        """A split by name."""
        if name not in self.splits:
            more = "; hold_out() makes a dev part of train" if name == "dev" else ""
            raise DataError(f"{self.name} has no split '{name}', only {', '.join(self.splits)}{more}")
        return self.splits[name]

    def hold_out(self, share: float = 0.1, at_most: int = 4000, seed: int = 0) -> Dataset:
        """With min(at_most, share) of train as `dev`, by a seeded draw; a data set that has a dev is kept as it is."""
        if "dev" in self.splits:
            return self
        n = len(self.train)
        n_dev = min(at_most, int(n * share))
        if n_dev < 1:
            raise DataError(f"{self.name}: a share of {share} of {n:,} training texts leaves no text to hold out")
        drawn = np.random.default_rng(seed).permutation(n)
        splits = dict(self.splits)
        splits["train"] = self.train.take(np.sort(drawn[n_dev:]))
        splits["dev"] = self.train.take(np.sort(drawn[:n_dev]))
        held_out = {"share": share, "at_most": at_most, "seed": seed}
        return replace(self, splits=splits, facts={**self.facts, "held_out": held_out})


def as_table(texts: Texts) -> pa.Table:
    """Whatever holds texts, as an Arrow table with a column `text`."""
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts, got one text; put it into a list")
    if isinstance(texts, pa.Table):
        table = texts
    elif isinstance(texts, Mapping):
        table = pa.table({name: pa.array(column, pa.string()) for name, column in texts.items()})
    else:
        rows = list(texts)
        if rows and isinstance(rows[0], Mapping):
            names = dict.fromkeys(name for row in rows for name in row)
            table = pa.table({name: pa.array([row.get(name) or "" for row in rows], pa.string()) for name in names})
        else:
            wrong = next((row for row in rows if not isinstance(row, str)), None)
            if wrong is not None:
                raise DataError(f"a text must be a string, got {type(wrong).__name__}")
            table = pa.table({TEXT: pa.array(rows, pa.string())})
    if TEXT not in table.column_names:
        raise DataError(f"texts must have a column '{TEXT}', got {', '.join(table.column_names) or 'no column'}")
    return table


def _visible_bytes(value: Any) -> memoryview | bytes:
    """The bytes that an array shows, without what its buffers hold beside."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    offsets = np.frombuffer(value.buffers()[1], np.int64)[value.offset : value.offset + len(value) + 1]
    data = value.buffers()[2]
    return b"" if data is None else memoryview(data)[int(offsets[0]) : int(offsets[-1])]
