"""Texts and labels as people hold them, turned into an Arrow table and a label matrix.

    as_table(texts)                  ->  pa.Table (n_texts rows), every column of type string, without nulls
    as_labels(labels, n_texts)       ->  LabelMatrix (n_texts, n_labels), Vocabulary
    labels_column(texts)             ->  the column `labels` of a table, or None

Tables may be Arrow tables, pandas or polars data frames, Hugging Face data sets, mappings of columns or lists of
records. Labels may be one list of label ids per text or an indicator matrix with one column per label.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.arrow import string_array
from longtail.data.matching import ids_in
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.sparse import checked_csr
from longtail.types import LabelMatrix

TEXT = "text"
"""The column that every table of texts has."""
LABELS = "labels"
"""The column of a table that holds the label ids of each text."""
_BITS = {"0", "1", "0.0", "1.0", "False", "True"}
_FEW = 100
"""Lists of texts up to this length become Arrow arrays without pandas, which a program may never need."""


class Strings(Protocol):
    """Several strings: a list, tuple, set, array or column of them.

    One string is not: its `__contains__` takes strings only, which lets type checkers refuse it.
    """

    def __iter__(self) -> Iterator[str]: ...
    def __len__(self) -> int: ...
    def __contains__(self, value: object, /) -> bool: ...


class ArrowStream(Protocol):
    """A table that can be read as Arrow: pyarrow, pandas and polars have this."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class HuggingFaceDataset(Protocol):
    """A `datasets.Dataset`."""

    @property
    def column_names(self) -> Any:
        """The names of its columns."""

    def with_format(self, type: str | None = None, /) -> Any:
        """Return the same data set with rows of another type."""


class SparseMatrix(Protocol):
    """A matrix or array of scipy.sparse."""

    def tocsr(self) -> Any:
        """Return it as rows of entries."""


Texts: TypeAlias = Strings | Mapping[str, Strings] | Sequence[Mapping[str, Any]] | ArrowStream | HuggingFaceDataset
"""What may be given where texts are wanted: texts, columns of texts, rows of fields, or a table of any make."""
LabelSets: TypeAlias = Iterable[Strings] | ArrowStream | SparseMatrix | NDArray[Any]
"""What may be given where labels are wanted: the label ids of each text, or an indicator matrix."""


def as_table(texts: Texts) -> pa.Table:
    """Return `texts` as an Arrow table with a column `text`; columns that hold no texts are left out."""
    columns = _columns(texts)
    if TEXT not in columns:
        raise DataError(f"texts must have a column '{TEXT}', got {', '.join(map(str, columns)) or 'no column'}")
    if LABELS in columns and not _holds_texts(columns[LABELS]):
        del columns[LABELS]
    try:
        return pa.table({name: as_strings(column, name) for name, column in columns.items()})
    except pa.ArrowInvalid as error:
        raise DataError(f"columns of texts must be equally long: {error}") from error


def as_strings(values: Any, name: str) -> pa.ChunkedArray:
    """Return texts as an Arrow column of type string without nulls; a missing text is an empty one.

    `name` is the column named in errors.
    """
    try:
        column = values if isinstance(values, pa.Array | pa.ChunkedArray) else _string_array(values)
        column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
        if not is_text(column.type):
            raise DataError(f"column '{name}' must hold texts, got {column.type}")
        column = column.cast(pa.string())
        return pc.fill_null(column, "") if column.null_count else column
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError) as error:
        raise DataError(f"column '{name}' must hold texts: {error}") from error


def labels_column(texts: Texts) -> Any | None:
    """Return the column `labels` of a table of any make; None where there is none."""
    if isinstance(texts, Sequence) and not (texts and isinstance(texts[0], Mapping)):
        return None
    is_table = isinstance(texts, Mapping | Sequence) or hasattr(texts, "columns") or _is_hugging_face(texts)
    column = _columns(texts, texts_only=False).get(LABELS) if is_table else None
    names = _class_names(texts)
    if column is None or names is None:
        return column
    return [[names[number] for number in row] for row in column.to_pylist()]


def as_labels(labels: LabelSets, n_texts: int, vocabulary: Vocabulary | None = None) -> tuple[LabelMatrix, Vocabulary]:
    """Return the labels of `n_texts` texts by number, and the vocabulary that numbers them.

    `labels` are lists of label ids, one per text; or an indicator matrix: a numpy array or scipy.sparse matrix whose
    column i is label i of `vocabulary` (without one, columns are called '0', '1', ...), or a data frame whose columns
    are label ids. Label lists without a vocabulary are numbered in sorted order. Labels that are names in a given
    vocabulary get its ids; labels that it does not hold are put behind its own.
    """
    if (
        hasattr(labels, "tocsr")
        or hasattr(labels, "columns")
        or (isinstance(labels, np.ndarray) and _is_indicator(labels))
    ):
        return _from_indicator(labels, n_texts, vocabulary)
    if isinstance(labels, str | bytes | Mapping) or not isinstance(labels, Iterable):
        raise DataError(f"labels must be lists of label ids, one per text, got {_shown(labels)}")
    rows = [
        _checked_row(row, number)
        for number, row in enumerate(labels.to_pylist() if isinstance(labels, pa.Array | pa.ChunkedArray) else labels)
    ]
    _check_as_many(n_texts, len(rows), "label lists")
    distinct = {label for row in rows for label in row}
    if distinct <= _BITS and any(len(set(row)) < len(row) for row in rows):
        raise DataError("labels must be label ids, got rows of 0 and 1 as texts; an indicator matrix must hold numbers")
    id_of = ids_in(vocabulary, sorted(distinct))
    vocabulary = Vocabulary.of(list(id_of)) if vocabulary is None else vocabulary.extended(id_of.values())
    position = {label: vocabulary.position[id] for label, id in id_of.items()}
    return LabelMatrix.from_lists(([position[label] for label in row] for row in rows), len(vocabulary)), vocabulary


def _columns(texts: Texts, texts_only: bool = True) -> dict[str, Any]:
    """Return the columns of a table of any make by name; of Arrow tables only those that hold texts, if so asked."""
    if isinstance(texts, str):
        raise DataError("texts must be a list of texts, got one text; put it into a list")
    table: Any = texts
    if _is_hugging_face(table):
        table = table.with_format("arrow")[:]
    elif hasattr(table, "__arrow_c_stream__") and hasattr(table, "columns"):  # data frames of any make
        table = _from_frame(table)
    if isinstance(table, pa.Table):
        names = table.column_names
        return {name: table[name] for name in names if not texts_only or name == TEXT or is_text(table[name].type)}
    if isinstance(table, Mapping):
        return dict(table)
    if isinstance(table, pa.Array | pa.ChunkedArray):
        return {TEXT: table}
    if not isinstance(table, Iterable):
        raise DataError(f"texts must be a list of texts or a table, got {_shown(table)}")
    rows = list(table)
    kind: type = Mapping if rows and isinstance(rows[0], Mapping) else str
    wrong = next((number for number, row in enumerate(rows) if not isinstance(row, kind)), None)
    if wrong is not None:
        wanted = "a mapping of fields, as the first one" if kind is Mapping else "a string"
        raise DataError(f"texts[{wrong}] must be {wanted}, got {_shown(rows[wrong])}")
    if kind is str:
        return {TEXT: rows}
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}


def _from_frame(frame: Any) -> pa.Table:
    """Return a data frame as an Arrow table, without the column that pandas makes of an index."""
    if isinstance(frame, pa.Table):
        return frame
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"a data frame must have columns of different names, each with plain values of one type: {error}"
        ) from error
    named = {str(name) for name in frame.columns}
    return table.select([name for name in table.column_names if name in named])


def _is_hugging_face(texts: Any) -> bool:
    return hasattr(texts, "with_format") and hasattr(texts, "column_names")


def _class_names(texts: Any) -> list[str] | None:
    """Return the label names of a Hugging Face data set that has labels by number (`ClassLabel`)."""
    feature = getattr(texts, "features", {}).get(LABELS) if _is_hugging_face(texts) else None
    names: list[str] | None = getattr(getattr(feature, "feature", None), "names", None)
    return names


def _string_array(values: Any) -> pa.Array:
    """Return strings as an Arrow array."""
    is_short_list = isinstance(values, list) and len(values) <= _FEW and all(isinstance(value, str) for value in values)
    return string_array([value.encode() for value in values]) if is_short_list else pa.array(values, pa.string())


def _holds_texts(values: Any) -> bool:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return is_text(values.type)
    return all(value is None or isinstance(value, str) for value in values)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of this Arrow type are strings."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(is_kind(inner) for is_kind in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _checked_row(row: Any, number: int) -> list[str]:
    """Return the label ids of one text; raise if they are anything but a collection of strings."""
    if isinstance(row, str):
        shown = repr(str(row))
        raise DataError(
            f"labels[{number}] must be a list of label ids, got the string {shown}; write [{shown}] if that is one "
            "label, or split it at the separator of its labels"
        )
    if isinstance(row, bytes | Mapping) or not isinstance(row, Iterable):
        none = "; a text without labels has []" if row is None or row != row else ""
        raise DataError(f"labels[{number}] must be a list of label ids, got {_shown(row)}{none}")
    ids = list(row)
    for place, label in enumerate(ids):
        if not isinstance(label, str):
            _refuse_label(label, number, place)
        if not label.strip():
            raise DataError(f"labels[{number}][{place}] must be a label id, got the empty string {label!r}")
    return ids


def _refuse_label(label: Any, number: int, place: int) -> NoReturn:
    is_number = hasattr(label, "dtype") or (isinstance(label, int | float) and label == label)
    hint = "; label ids are strings, and an indicator matrix must be a numpy array of numbers" if is_number else ""
    raise DataError(f"labels[{number}][{place}] must be a string, got {_shown(label)}{hint}")


def _is_indicator(labels: NDArray[Any]) -> bool:
    return labels.ndim == 2 and labels.dtype.kind in "biuf"


def _from_indicator(labels: Any, n_texts: int, vocabulary: Vocabulary | None) -> tuple[LabelMatrix, Vocabulary]:
    """Return the labels of an indicator matrix, as `as_labels` says."""
    names: list[str] | None = None
    if hasattr(labels, "columns"):
        names, labels = _frame_values(labels)
    if len(labels.shape) != 2:
        raise DataError(f"an indicator matrix must have a row per text and a column per label, got {labels.shape}")
    rows, columns, values = _entries(labels)
    wrong = np.flatnonzero(values != 1)
    if len(wrong):
        at = int(wrong[0])
        place = f"labels[{int(rows[at])}, {int(columns[at])}]"
        raise DataError(f"an indicator matrix must hold 0 and 1 only, got {values[at]} in {place}")
    n_columns = int(labels.shape[1])
    _check_as_many(n_texts, int(labels.shape[0]), "rows of labels")
    if names is None and vocabulary is not None and len(vocabulary) != n_columns:
        raise DataError(
            f"an indicator matrix must have one column per label of the vocabulary ({len(vocabulary):,}), "
            f"got {n_columns:,} columns"
        )
    if names is None:
        whole = Vocabulary.of([str(number) for number in range(n_columns)]) if vocabulary is None else vocabulary
        return LabelMatrix.from_pairs(rows, columns, n_texts, n_columns), whole
    id_of = ids_in(vocabulary, names)
    whole = Vocabulary.of(names) if vocabulary is None else vocabulary.extended(id_of.values())
    numbers = np.fromiter((whole.position[id_of[name]] for name in names), np.int64, len(names))
    return LabelMatrix.from_pairs(rows, numbers[columns], n_texts, len(whole)), whole


def _frame_values(frame: Any) -> tuple[list[str], NDArray[Any]]:
    """Return the column names of a data frame and its values (n_texts, n_labels)."""
    table = _from_frame(frame)
    names = list(table.column_names)
    if not names or not all(name.strip() for name in names):
        raise DataError(f"a data frame of labels must have label ids as names of its columns, got {names}")
    wrong = next((name for name in names if not _is_number(table[name].type)), None)
    if wrong is not None:
        raise DataError(
            f"a data frame of labels must hold 0 and 1, one column per label, got {table[wrong].type} in column "
            f"'{wrong}'; label lists are one column: frame['{wrong}']"
        )
    return names, np.stack([table[name].to_numpy() for name in names], axis=1)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _entries(matrix: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return rows, columns and values of all entries that are not 0."""
    if not hasattr(matrix, "tocsr"):
        rows, columns = np.nonzero(matrix)
        return rows, columns, matrix[rows, columns]
    entries = checked_csr(matrix, "an indicator matrix").tocoo()
    kept = entries.data != 0
    return entries.row[kept], entries.col[kept], entries.data[kept]


def _check_as_many(n_texts: int, n_rows: int, what: str) -> None:
    if n_rows != n_texts:
        raise DataError(f"texts and labels must be as many, got {n_texts:,} texts and {n_rows:,} {what}")


def _shown(value: Any) -> str:
    """Return a value and its type for a message, cut short."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return text if value is None else f"{text} ({type(value).__name__})"
