"""Tables: CSV, TSV and Parquet, one text per row, columns by name.

    text,labels
    "how long to boil an egg",eggs;boiling

Labels are in one cell, separated by a separator, or in Parquet in a column of lists. A table is one split; a folder
with train.csv, dev.csv or test.csv has several.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq
from pydantic import Field

from longtail.data.dataset import TEXT, Split, as_strings
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import BlockBytes, ColumnOptions, Source, Stream, TextBatch, no_labels, without_blanks
from longtail.data.formats.splits import need_files, split_files
from longtail.data.inputs import is_text
from longtail.data.lines import bare_suffix, fault, read_blocks
from longtail.errors import DataError, did_you_mean

DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
SUFFIXES = (*DELIMITERS, *PARQUET)
_FORMULA = r"'*[=+\-@\t\r]"
_Character = Annotated[str, Field(min_length=1, max_length=1)]


class TableOptions(ColumnOptions):
    """Which columns are read, and how."""

    block_bytes: BlockBytes = 32 << 20
    """How many bytes are read at a time; a row of a table must fit."""
    label_separator: Annotated[str, Field(min_length=1)] = ";"
    """Separator of labels in a cell; white space around a label is dropped."""
    id_column: str | None = None
    """A column to keep as `id`."""
    delimiter: _Character | None = None
    """Separator of cells. By default a comma; a tab in .tsv files."""
    quoted: bool = True
    """Whether a cell may be enclosed in double quotes and then contain delimiters and line breaks."""


def fits(path: Path) -> bool:
    """Return whether this is a table or a folder of tables."""
    return bool(split_files(path, SUFFIXES))


def read(path: Path, options: TableOptions) -> Source:
    """Return one split per table."""
    files = need_files(path, SUFFIXES, "train, dev or test.csv (also .tsv, .parquet)")
    return Source({split: Stream(file, _read(file, options)) for split, file in files.items()})


def write(split: Split, path: Path, options: TableOptions | None = None) -> None:
    """Write texts with their labels and fields as CSV, TSV or Parquet; the suffix decides."""
    options = options or TableOptions()
    ids = pa.array(split.vocabulary.ids, pa.string())
    labels = pa.LargeListArray.from_arrays(split.labels.indptr, ids.take(pa.array(split.labels.indices)))
    columns = {options.text_column if name == TEXT else name: split.texts[name] for name in split.texts.column_names}
    if bare_suffix(path) in PARQUET:
        pq.write_table(pa.table({**columns, options.label_column: labels}), str(path))
        return
    separator = options.label_separator
    torn = pc.or_(pc.match_substring(ids, separator), pc.not_equal(ids, pc.utf8_trim_whitespace(ids)))
    if pc.any(torn).as_py():
        raise DataError(
            f"labels in a cell must neither contain the separator '{separator}' nor start or end with white space, "
            f"got '{ids.filter(torn)[0]}'; choose another label_separator, or write .jsonl or .parquet"
        )
    joined = pc.binary_join(labels, separator)
    style = pv.WriteOptions(delimiter=_delimiter(path, options), quoting_style="needed")
    with pa.output_stream(str(path)) as out:
        pv.write_csv(without_formulas(pa.table({**columns, options.label_column: joined})), out, style)


def _read(path: Path, options: TableOptions) -> Iterator[TextBatch]:
    tables = _parquet(path, options) if bare_suffix(path) in PARQUET else _csv(path, options)
    for table in tables:
        columns = {TEXT: table[options.text_column]} | {
            name: _as_text(table[name], name in (*options.numbers, "id")) for name in _further(table.schema, options)
        }
        if options.id_column is not None:
            columns["id"] = _as_text(table[options.id_column])
        try:
            texts = pa.table({name: as_strings(column, name) for name, column in columns.items()})
            labels = _labels(table, options)
        except DataError as error:
            raise DataError(f"{path}: {error}") from error
        if table.num_rows:
            yield TextBatch(texts, labels)


def _parquet(path: Path, options: TableOptions) -> Iterator[pa.Table]:
    try:
        with pq.ParquetFile(str(path)) as file:
            wanted = _wanted(path, file.schema_arrow, options)
            for batch in file.iter_batches(columns=wanted):
                batch.validate(full=True)  # Parquet does not check that strings are UTF-8
                yield pa.table(batch)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may be any bytes
        raise DataError(f"cannot read {path}: {error}") from error


def _csv(path: Path, options: TableOptions) -> Iterator[pa.Table]:
    header = _header(path, options)
    wanted = _wanted(path, pa.schema([(name, pa.string()) for name in header]), options)
    parse = pv.ParseOptions(
        delimiter=_delimiter(path, options),
        quote_char='"' if options.quoted else False,
        newlines_in_values=options.quoted,
    )
    convert = pv.ConvertOptions(
        include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), check_utf8=False
    )
    try:
        stream = pa.PythonFile(_Stream(path, options), mode="r")
        reader = pv.open_csv(stream, pv.ReadOptions(use_threads=False, block_size=options.block_bytes), parse, convert)
        for batch in reader:
            yield with_formulas(pa.table(batch))
    except pa.ArrowInvalid as error:
        raise _csv_fault(path, options, error) from error


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table that spreadsheets take as plain text: a quote before cells and names that look like formulas."""
    columns = [
        pc.replace_substring_regex(column, rf"^({_FORMULA})", r"'\1") if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, [re.sub(rf"^({_FORMULA})", r"'\1", name) for name in table.column_names])


def with_formulas(table: pa.Table) -> pa.Table:
    """Return the columns of strings as they were before `without_formulas`."""
    columns = [pc.replace_substring_regex(column, rf"^'({_FORMULA})", r"\1") for column in table.columns]
    return pa.table(columns, table.column_names)


class _Stream(io.RawIOBase):
    """A file as one stream of checked UTF-8."""

    def __init__(self, path: Path, options: TableOptions) -> None:
        self._blocks = read_blocks(path, options.on_bad_utf8)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block.data)
        n = min(len(buffer), len(self._rest))
        buffer[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


def _header(path: Path, options: TableOptions) -> list[str]:
    try:
        for cells, _ in _rows(path, options):
            return cells
    except csv.Error as error:
        raise fault(path, 1, f"must be a row of column names: {error}; is this a table?") from error
    raise DataError(f"{path} must start with a row of column names, it is empty")


def _rows(path: Path, options: TableOptions) -> Iterator[tuple[list[str], int]]:
    """Cells of each row, with the number of its last line: slow, for the header and for faults."""
    lines = io.TextIOWrapper(io.BufferedReader(_Stream(path, options)), "utf-8", newline="")
    rows = csv.reader(
        lines, delimiter=_delimiter(path, options), quoting=csv.QUOTE_MINIMAL if options.quoted else csv.QUOTE_NONE
    )
    for cells in rows:
        if cells:
            yield cells, rows.line_num


def _csv_fault(path: Path, options: TableOptions, error: pa.ArrowInvalid) -> DataError:
    """Return the error that Arrow raised, with its line."""
    try:
        header = _header(path, options)
        for cells, line in _rows(path, options):
            if len(cells) != len(header):
                hint = "set the delimiter, or quote cells that hold it"
                return fault(path, line, f"a row must have {len(header)} cells, got {len(cells)}; {hint}")
    except csv.Error:
        pass  # Arrow's own words are left
    return DataError(f"cannot read {path}: {error}")


def _wanted(path: Path, schema: pa.Schema, options: TableOptions) -> list[str]:
    names = schema.names
    named = (options.text_column, options.label_column, *_further(schema, options), options.id_column)
    wanted = [name for name in named if name is not None]
    for name in wanted:
        if names.count(name) != 1:
            got = f"{names.count(name)} of that name" if name in names else f"the columns {', '.join(names)}"
            hint = did_you_mean(name, names) if name not in names else ""
            what = "`label_column`" if name == options.label_column else "`text_column`"
            what = what if name in (options.text_column, options.label_column) else "id_column and fields"
            how = _delimiter_hint(names) or f"choose with {what}"
            raise DataError(f"{path} must have one column '{name}', got {got}{hint}; {how}")
    return list(dict.fromkeys(wanted))


def _delimiter_hint(names: list[str]) -> str:
    """Return what to set if all names of columns seem to stand in one cell."""
    mark = next((mark for mark in ";|\t," if len(names) == 1 and mark in names[0]), None)
    if mark == "\t":
        return "its cells seem to end at tabs: call it .tsv"
    return "" if mark is None else f'its cells seem to end at {mark}: set `delimiter="{mark}"`'


def _further(schema: pa.Schema, options: TableOptions) -> list[str]:
    """Return the columns to keep beside text, labels and id."""
    if options.fields is not None:
        return list(options.fields)
    taken = {TEXT, options.text_column, options.label_column, options.id_column, ""}
    return [
        field.name
        for field in schema
        if schema.names.count(field.name) == 1
        and field.name not in taken
        and (is_text(field.type) or (field.name in (*options.numbers, "id") and pa.types.is_integer(field.type)))
    ]


def _as_text(column: pa.ChunkedArray, numbers: bool = True) -> pa.ChunkedArray:
    return column.cast(pa.string()) if numbers and pa.types.is_integer(column.type) else column


def _delimiter(path: Path, options: TableOptions) -> str:
    return options.delimiter or DELIMITERS.get(bare_suffix(path), ",")


def _labels(table: pa.Table, options: TableOptions) -> pa.ListArray:
    """Label ids of each row, from cells to be split, single values or lists."""
    if options.label_column is None:
        return no_labels(len(table))
    column = table[options.label_column].combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = kind.value_type
        if not (is_text(inner) or pa.types.is_integer(inner) or pa.types.is_null(inner)):
            raise DataError(f"column '{options.label_column}' must hold lists of label ids, got lists of {inner}")
        return without_blanks(column.cast(pa.list_(pa.string())))
    if pa.types.is_integer(kind):
        return without_blanks(pc.split_pattern(column.cast(pa.string()), options.label_separator))
    cells = as_strings(column, options.label_column).combine_chunks()
    return without_blanks(pc.split_pattern(cells, options.label_separator))


FORMATS.register("table")(Format("CSV, TSV or Parquet", TableOptions, fits, read))
