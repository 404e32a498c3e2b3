"""A data set: texts in Arrow tables, label sets as CSR, one vocabulary for all splits.

    Dataset.train / .dev / .test -> Split(texts: Arrow table (n_texts rows), labels: LabelMatrix)

A text may have several fields (title, text, ...), one Arrow column each; `text` is the main one. Every
column is of type string and has no nulls. Texts stay in Arrow, so a million of them fit where Python
lists would not. Data that come as sparse features have these beside empty texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import EllipsisType
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.inputs import LABELS, TEXT, LabelSets, Texts, as_labels, as_strings, as_table, labels_column
from longtail.data.matching import NamedLabels, named_by
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.notebook import SHOWN_ROWS, html_table, shorten
from longtail.sparse import checked_csr
from longtail.types import LabelMatrix

__all__ = ["LABELS", "TEXT", "Dataset", "LabelSets", "Split", "Texts", "as_strings", "as_table"]

PIECE_BYTES = 1 << 30
"""A string array of Arrow ends at 2 GiB, so rows are gathered in pieces of at most half of that."""


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Texts with their labels.

    split = Split.of(["a red apple", "a grey stone"], [["fruit"], ["rock", "grey"]])
    len(split)           2
    split[0]             {"text": "a red apple", "labels": ["fruit"]}
    split[:1]            a Split of the first text; also with an array of row numbers or a mask
    for record in split  the records one after the other
    """

    texts: pa.Table  # string columns without nulls, `text` among them
    labels: LabelMatrix
    vocabulary: Vocabulary
    features: Any | None = None  # csr_matrix (n_texts, n_features) float32, where the data came with features
    official: Vocabulary | None = None
    """The whole vocabulary that labels are taken from, where it is known: a model keeps all of its labels."""

    def __post_init__(self) -> None:
        if self.features is not None:
            checked_csr(self.features, "features")

    @classmethod
    def of(cls, texts: Texts, labels: LabelSets | None = None, vocabulary: Vocabulary | None = None) -> Split:
        """Build from texts and their labels.

        `texts` is a list of texts or a table with a column `text` (Arrow, pandas, polars, Hugging Face). `labels` has
        one list of label ids per text, or is an indicator matrix with one column per label; without it the column
        `labels` of the table is taken. Without a vocabulary, the labels in sorted order make it.
        """
        table = as_table(texts)
        label_sets = labels_column(texts) if labels is None else labels
        if label_sets is None:
            raise DataError(
                "fit needs the labels of the texts: fit(texts, label_lists), fit(dataset.train), or a table with a "
                f"column '{LABELS}'"
            )
        matrix, whole = as_labels(label_sets, table.num_rows, vocabulary)
        return cls(table, matrix, whole)

    def __len__(self) -> int:
        return int(self.texts.num_rows)

    @property
    def shape(self) -> tuple[int]:
        """The number of texts, as scikit-learn asks for it before it takes rows for cross-validation."""
        return (len(self),)

    @overload
    def __getitem__(self, rows: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, rows: slice | NDArray[Any] | list[int] | tuple[Any, EllipsisType]) -> Split: ...
    def __getitem__(self, rows: Any) -> dict[str, Any] | Split:
        """Return one record (fields and label ids), or a Split of the rows of a slice, array or mask."""
        if isinstance(rows, tuple):  # scikit-learn writes split[rows, ...]
            rows = rows[0]
        picked = np.arange(len(self))[rows]
        return self.take(picked) if np.ndim(picked) else self._record(int(picked))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._record, range(len(self)))

    def _record(self, row: int) -> dict[str, Any]:
        fields = {name: self.texts[name][row].as_py() for name in self.texts.column_names}
        return fields | {LABELS: [self.vocabulary.ids[label] for label in self.labels[row]]}

    def __repr__(self) -> str:
        fields = ", ".join(self.texts.column_names)
        return f"Split({len(self):,} texts ({fields}), {self.labels.n_labels:,} labels)"

    def _repr_html_(self) -> str:
        head = [*self.texts.column_names, LABELS]
        rows = [
            [*(record[name] for name in head[:-1]), ", ".join(self.label_names(row))]
            for row, record in enumerate(map(self._record, range(min(len(self), SHOWN_ROWS))))
        ]
        return html_table(repr(self), rows, head, len(self) - len(rows))

    @cached_property
    def has_texts(self) -> bool:
        """Whether there is anything to read; data that came as features only have empty texts."""
        return self.features is None or bool(pc.any(pc.greater(pc.binary_length(self.texts[TEXT]), 0)).as_py())

    def take(self, rows: NDArray[Any]) -> Split:
        """Return the given rows (numbers, or a mask), in the given order."""
        rows = np.arange(len(self))[rows]
        texts = pa.table({name: take_strings(self.texts[name], rows) for name in self.texts.column_names})
        features = None if self.features is None else self.features[rows]
        return replace(self, texts=texts, labels=self.labels.take(rows), features=features)

    def over(self, vocabulary: Vocabulary) -> Split:
        """Return the same texts and labels over a vocabulary that holds all of these labels."""
        unknown = next((label for label in self.vocabulary.ids if label not in vocabulary.position), None)
        if unknown is not None:
            raise DataError(f"the vocabulary must hold every label of the texts, got none for '{unknown}'")
        new_id = np.fromiter((vocabulary.position[label] for label in self.vocabulary.ids), np.int64)
        return replace(self, labels=self.labels.renumber(new_id, len(vocabulary)), vocabulary=vocabulary)

    def named_by(self, official: Vocabulary) -> Split:
        """With labels named as in an official vocabulary.

        Labels stay in their order, unless some are given as names there: these become ids, and all are sorted.
        """
        return self.with_labels(named_by(official, self.vocabulary), official)

    def with_labels(self, named: NamedLabels, official: Vocabulary) -> Split:
        """With the labels that `longtail.data.matching.named_by` gave for those of this split."""
        labels = self.labels.renumber(named.new_id, len(named.labels))
        return replace(self, labels=labels, vocabulary=named.labels, official=official)

    def label_names(self, text: int) -> list[str]:
        """Names of the labels of one text."""
        return [self.vocabulary.names[label] for label in self.labels[text]]

    @cached_property
    def fingerprint(self) -> str:
        """A checksum of texts, labels and label ids: tells whether a model saw these data."""
        digest = hashlib.sha256()
        for name in sorted(self.texts.column_names):
            digest.update(name.encode())
            # All lengths, then all bytes: the same texts in other chunks have the same checksum.
            for chunk in self.texts[name].chunks:
                digest.update(np.asarray(pc.binary_length(chunk), np.int64).data)
            for chunk in self.texts[name].chunks:
                digest.update(_visible_bytes(chunk.cast(pa.large_binary())))
        if self.features is not None:
            for array in (self.features.indptr, self.features.indices, self.features.data):
                digest.update(np.ascontiguousarray(array).data)
        digest.update(np.ascontiguousarray(self.labels.indptr).data)
        digest.update(np.ascontiguousarray(self.labels.indices).data)
        digest.update("\n".join(self.vocabulary.ids).encode())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Named splits over one vocabulary.

    data = longtail.load_dataset("debtags-sample")
    data.train, data.test       the splits
    data.vocabulary             their labels
    """

    name: str
    splits: Mapping[str, Split]
    vocabulary: Vocabulary
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Where it came from, and what a split was held out with."""
    official: Vocabulary | None = None
    """The whole vocabulary that labels are taken from, where it is known; most of its labels may have no text."""

    @classmethod
    def of(
        cls,
        splits: Mapping[str, tuple[Texts, LabelSets]],
        name: str = "data",
        vocabulary: Vocabulary | None = None,
    ) -> Dataset:
        """Build from texts and labels by split; label order is that of the vocabulary, then sorted."""
        apart = {split: Split.of(texts, labels) for split, (texts, labels) in splits.items()}
        ids = sorted({label for split in apart.values() for label in split.vocabulary.ids})
        whole = Vocabulary.of(ids) if vocabulary is None else vocabulary.extended(ids)
        return cls(name, {name: split.over(whole) for name, split in apart.items()}, whole)

    def __repr__(self) -> str:
        splits = ", ".join(f"{name}: {len(split):,} texts" for name, split in self.splits.items())
        return f"Dataset({shorten(self.name, 40)!r}, {splits}, {len(self.vocabulary):,} labels)"

    def _repr_html_(self) -> str:
        rows = [
            (name, f"{len(split):,}", f"{split.labels.labels_per_text().mean() if len(split) else 0:.1f}")
            for name, split in self.splits.items()
        ]
        title = f"{self.name}: {len(self.vocabulary):,} labels"
        return html_table(title, rows, ("split", "texts", "labels per text"))

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
        """Return a split by name."""
        if name not in self.splits:
            more = "; hold_out() makes a dev part of train" if name == "dev" else ""
            raise DataError(f"{self.name} has no split '{name}', only {', '.join(self.splits)}{more}")
        return self.splits[name]

    def named_by(self, official: Vocabulary) -> Dataset:
        """With labels named as in an official vocabulary, as `Split.named_by` does."""
        named = named_by(official, self.vocabulary)
        splits = {name: split.with_labels(named, official) for name, split in self.splits.items()}
        return replace(self, splits=splits, vocabulary=named.labels, official=official)

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


def take_strings(
    column: pa.ChunkedArray, rows: NDArray[np.int64], *, piece_bytes: int = PIECE_BYTES
) -> pa.ChunkedArray:
    """Return rows of a string column; Arrow's own take would first join all chunks and end at 2 GiB."""
    sizes = np.asarray(pc.binary_length(column), np.int64)[rows]
    piece_of = np.cumsum(sizes) // piece_bytes
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    pieces = []
    for piece in np.split(rows, np.flatnonzero(np.diff(piece_of)) + 1):
        chunk_of = np.searchsorted(starts, piece, "right") - 1
        gathered = [column.chunk(c).take(pa.array(piece[chunk_of == c] - starts[c])) for c in np.unique(chunk_of)]
        back = np.argsort(np.argsort(chunk_of, kind="stable"))
        pieces.append(pa.concat_arrays(gathered or [pa.array([], pa.string())]).take(pa.array(back)))
    return pa.chunked_array(pieces, pa.string())


def _visible_bytes(value: pa.LargeBinaryArray) -> memoryview | bytes:
    """Return the bytes that an array shows, without what else its buffers hold."""
    offsets = np.frombuffer(value.buffers()[1], np.int64)[value.offset : value.offset + len(value) + 1]
    data = value.buffers()[2]
    return b"" if data is None or not len(offsets) else memoryview(data)[int(offsets[0]) : int(offsets[-1])]
