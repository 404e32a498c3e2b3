"""What a reader returns: splits as streams of batches, and the label names beside them.

    Source.splits: name -> Stream(path, batches)      TextBatch: some texts, their label ids, their features

A reader opens no file before its batches are asked for, and holds one batch at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from longtail.data.dataset import TEXT
from longtail.data.lines import BLOCK_BYTES, OnBadUtf8
from longtail.data.vocabulary import Vocabulary
from longtail.options import Options

BlockBytes = Annotated[PositiveInt, Field(le=1 << 30)]


class TextOptions(Options):
    """Options of all readers of text files."""

    on_bad_utf8: OnBadUtf8 = "error"
    """`error` stops at bytes that are not UTF-8 and names the line; `replace` inserts U+FFFD."""
    block_bytes: BlockBytes = BLOCK_BYTES
    """How many bytes are read at a time."""


class ColumnOptions(TextOptions):
    """Options of readers of named columns."""

    text_column: str = TEXT
    """The column that holds the text."""
    label_column: str | None = "labels"
    """The column that holds the label ids; none if texts are read to be tagged."""
    fields: tuple[str, ...] | None = None
    """Further columns of texts to keep, such as a title. By default all of them."""
    numbers: tuple[str, ...] = ()
    """Further columns to keep whose whole numbers are read as texts, such as ids."""

    @model_validator(mode="after")
    def _fields_are_further_columns(self) -> Self:
        taken = {self.label_column} | ({TEXT, self.text_column} if self.text_column != TEXT else set())
        wrong = sorted(name for name in self.fields or () if name in taken)
        if wrong:
            raise ValueError(f"fields must not name the columns of text and labels, got {', '.join(wrong)}")
        return self


class NumberedOptions(TextOptions):
    """Options of readers whose labels may be numbers."""

    label_names: str | None = None
    """A file that names label i in line i, counted from 0."""


@dataclass(frozen=True, eq=False)
class TextBatch:
    """Some texts of a split."""

    texts: pa.Table  # string columns without nulls, `text` among them
    labels: pa.ListArray  # list<string>: label ids of each text
    features: Any | None = None  # csr_matrix (n_texts, n_features)
    not_texts: frozenset[str] = frozenset()
    """Fields that hold something other than texts here, and so become no column of the split."""


@dataclass(frozen=True, eq=False)
class Stream:
    """A split that has not been read yet."""

    path: Path
    """The file that errors name."""
    batches: Iterable[TextBatch]


@dataclass(frozen=True, eq=False)
class Source:
    """Everything that a reader found."""

    splits: Mapping[str, Stream]
    labels: Vocabulary | None = None
    """Labels listed beside the texts: labels of the data set, with or without texts."""
    official: Vocabulary | None = None
    """The vocabulary that labels are taken from; it only names them."""
    hierarchy: Vocabulary | None = None
    """Ids and parents of labels."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The files that these three were read from."""


def no_texts(n_texts: int) -> pa.Table:
    """Return empty texts, for data with features only."""
    return pa.table({TEXT: pa.repeat("", n_texts)})


def no_labels(n_texts: int) -> pa.ListArray:
    """Return empty label lists, for texts to be tagged."""
    return grouped(np.zeros(0, np.int64), pa.array([], pa.string()), n_texts)


def grouped(rows: NDArray[Any], values: pa.Array, n_rows: int) -> pa.ListArray:
    """Return values as one list per row; `rows` has the row of each value, in ascending order."""
    offsets = np.zeros(n_rows + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n_rows), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def without_blanks(labels: pa.ListArray) -> pa.ListArray:
    """Return lists of labels without white space around labels and without blank labels."""
    rows = np.repeat(np.arange(len(labels)), np.asarray(pc.fill_null(pc.list_value_length(labels), 0)))
    values = pc.utf8_trim_whitespace(labels.flatten())
    keep = pc.fill_null(pc.not_equal(values, ""), False)
    return grouped(rows[np.asarray(keep)], values.filter(keep), len(labels))
