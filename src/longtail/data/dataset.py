"""A data set: texts in Arrow tables, label sets as CSR, one vocabulary for all splits.

    Dataset.train / .dev / .test -> Split(texts: Arrow table (n_texts rows), labels: LabelMatrix)

A text may have several fields (title, text, ...), one Arrow column each; `text` is the main one. Every
column is of type string and has no nulls. Texts stay in Arrow, so a million of them fit where Python
lists would not. Data that come as sparse features have these beside empty texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.types import LabelMatrix

TEXT = "text"
"""The column that every table of texts has."""

Texts: TypeAlias = pa.Table | pa.Array | Sequence[str] | Mapping[str, Sequence[str]] | Sequence[Mapping[str, str]]
"""What may be given where texts are wanted: a table or data frame, texts, columns of texts, or rows of fields."""

_PIECE_BYTES = 1 << 30
"""A string array of Arrow ends at 2 GiB, so rows are gathered in pieces of at most half of that."""


@dataclass(frozen=True, eq=False)
class Split:
    """Texts with their labels."""

    texts: pa.Table  # string columns without nulls, `text` among them
    labels: LabelMatrix
    vocabulary: Vocabulary
    features: Any | None = None  # csr_matrix (n_texts, n_features) float32, where the data came with features

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

    @cached_property
    def has_texts(self) -> bool:
        """Whether there is anything to read; data that came as features only have empty texts."""
        return self.features is None or bool(pc.any(pc.greater(pc.binary_length(self.texts[TEXT]), 0)).as_py())

    def take(self, rows: NDArray[Any]) -> Split:
        """The given rows (numbers, or a mask), in the given order."""
        rows = np.arange(len(self))[rows]
        texts = pa.table({name: _take(self.texts[name], rows) for name in self.texts.column_names})
        features = None if self.features is None else self.features[rows]
        return replace(self, texts=texts, labels=self.labels.take(rows), features=features)

    def over(self, vocabulary: Vocabulary) -> Split:
        """The same texts and labels over a vocabulary that holds all of these labels."""
        unknown = next((label for label in self.vocabulary.ids if label not in vocabulary.position), None)
        if unknown is not None:
            raise DataError(f"the vocabulary must hold every label of the texts, got none for '{unknown}'")
        new_id = np.fromiter((vocabulary.position[label] for label in self.vocabulary.ids), np.int64)
        return replace(self, labels=self.labels.renumber(new_id, len(vocabulary)), vocabulary=vocabulary)

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


@dataclass(frozen=True, eq=False)
class Dataset:
    """Named splits over one vocabulary."""

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
        splits: Mapping[str, tuple[Texts, Iterable[Iterable[str]]]],
        name: str = "data",
        vocabulary: Vocabulary | None = None,
    ) -> Dataset:
        """Build from texts and label lists a split; label order is that of the vocabulary, then sorted."""
        made = {split: Split.of(texts, labels) for split, (texts, labels) in splits.items()}
        found = sorted({label for split in made.values() for label in split.vocabulary.ids})
        whole = Vocabulary.of(found) if vocabulary is None else vocabulary.extended(found)
        return cls(name, {split: part.over(whole) for split, part in made.items()}, whole)

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

    def named_by(self, official: Vocabulary) -> Dataset:
        """With labels named as in an official vocabulary; they stay in their order."""
        named = self.vocabulary.described_by(official, self.vocabulary)
        splits = {name: replace(split, vocabulary=named) for name, split in self.splits.items()}
        return replace(self, splits=splits, vocabulary=named, official=official)

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
    """Whatever holds texts, as an Arrow table with a column `text`; columns that hold no texts are left out."""
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts, got one text; put it into a list")
    if hasattr(texts, "__arrow_c_stream__") and hasattr(texts, "columns"):  # data frames of any make
        texts = pa.table(texts)
    if isinstance(texts, pa.Table):
        columns = {name: texts[name] for name in texts.column_names if name == TEXT or _is_text(texts[name].type)}
    elif isinstance(texts, Mapping):
        columns = dict(texts)
    elif isinstance(texts, pa.Array | pa.ChunkedArray):
        columns = {TEXT: texts}
    else:
        rows = list(texts)
        kind: type = Mapping if rows and isinstance(rows[0], Mapping) else str
        wrong = [type(row).__name__ for row in rows if not isinstance(row, kind)]
        if wrong:
            raise DataError(f"a text must be a string (or all of them fields by name), got {wrong[0]}")
        names = dict.fromkeys(name for row in rows for name in row) if kind is Mapping else {}
        columns = {name: [row.get(name) for row in rows] for name in names} if kind is Mapping else {TEXT: rows}
    if TEXT not in columns:
        raise DataError(f"texts must have a column '{TEXT}', got {', '.join(columns) or 'no column'}")
    try:
        return pa.table({name: as_strings(column, name) for name, column in columns.items()})
    except pa.ArrowInvalid as error:
        raise DataError(f"columns of texts must be equally long: {error}") from error


def as_strings(values: Any, name: str) -> pa.ChunkedArray:
    """Texts as an Arrow column of type string without nulls; a missing text is an empty one."""
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else pa.array(values, pa.string())
        column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if not _is_text(column.type):
            raise DataError(f"column '{name}' must hold texts, got {column.type}")
        column = column.cast(pa.string())
        return pc.fill_null(column, "") if column.null_count else column
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise DataError(f"column '{name}' must hold texts: {error}") from error


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_kind(inner) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _take(column: pa.ChunkedArray, rows: NDArray[np.int64]) -> pa.ChunkedArray:
    """Rows of a string column; Arrow's own take would first join all chunks and end at 2 GiB."""
    sizes = np.asarray(pc.binary_length(column), np.int64)[rows]
    piece_of = np.cumsum(sizes) // _PIECE_BYTES
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    pieces = []
    for piece in np.split(rows, np.flatnonzero(np.diff(piece_of)) + 1):
        chunk_of = np.searchsorted(starts, piece, "right") - 1
        gathered = [column.chunk(c).take(pa.array(piece[chunk_of == c] - starts[c])) for c in np.unique(chunk_of)]
        back = np.argsort(np.argsort(chunk_of, kind="stable"))
        pieces.append(pa.concat_arrays(gathered or [pa.array([], pa.string())]).take(pa.array(back)))
    return pa.chunked_array(pieces, pa.string())


def _visible_bytes(value: pa.LargeBinaryArray) -> memoryview | bytes:
    """The bytes that an array shows, without what its buffers hold beside."""
    offsets = np.frombuffer(value.buffers()[1], np.int64)[value.offset : value.offset + len(value) + 1]
    data = value.buffers()[2]
    return b"" if data is None or not len(offsets) else memoryview(data)[int(offsets[0]) : int(offsets[-1])]
