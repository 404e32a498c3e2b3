"""Many texts in files: cut into blocks, and one block read some texts at a time.

    find_files("titles/")           ->  the files of a folder, in the order of their names
    cut_into_blocks(files, 50_000)  ->  [TextBlock(file, start, stop), ...]
    read_block(block, reading)      ->  ReadTexts: what a model reads, and the columns that are kept as they are

A Parquet file is cut between any two rows, and its columns keep their types. Other files cannot be entered in the
middle, so each is one block, and their columns are texts. Memory is that of one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from longtail.data.dataset import TEXT
from longtail.data.inputs import as_strings
from longtail.data.lines import bare_suffix
from longtail.data.texts import BATCH_TEXTS, JSON_LINES, TABLES, count_texts, read_texts
from longtail.errors import DataError, did_you_mean

PARQUET = (".parquet", ".pq")
_SUFFIXES = (*TABLES, *JSON_LINES, ".txt")
_BATCH_BYTES = 16 << 20
"""Batches of long texts are shorter, by what a row takes in the mean."""
_MOST_PARTS = 16
"""Into how many blocks a row group is divided at most: each of them decodes the rows before its own."""
_BUFFER_BYTES = 1 << 20


@dataclass(frozen=True)
class TextBlock:
    """Some rows of a file of texts."""

    file: Path
    start: int = 0
    stop: int | None = None
    """The row after the last one; None where only reading the file would tell."""

    @property
    def n_texts(self) -> int | None:
        """Number of rows, where it is known."""
        return None if self.stop is None else self.stop - self.start


@dataclass(frozen=True)
class TextReading:
    """Which columns a model reads, which others are kept, and how files are read."""

    columns: tuple[str, ...]
    """Columns that texts must have; `text` may be called otherwise in the data."""
    optional: tuple[str, ...] = ()
    """Further columns that the model reads where texts have them."""
    kept: tuple[str, ...] | None = None
    """Columns to keep; None is all."""
    format: str | None = None
    """Format of files, as in `read_texts`."""
    usual_options: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text_column(self) -> str:
        """The column that holds the text."""
        return str({**self.usual_options, **self.options}.get("text_column", TEXT))


@dataclass(frozen=True, eq=False)
class ReadTexts:
    """Some texts."""

    texts: pa.Table
    """The columns that the model reads, as strings."""
    kept: pa.Table
    """The columns that are kept, as they were."""

    @classmethod
    def of(cls, table: pa.Table, reading: TextReading, source: str) -> Self:
        """Return the columns of a table that are read and kept; `source` names the data in errors."""
        names = {name: reading.text_column if name == TEXT else name for name in reading.columns}
        names |= {name: name for name in reading.optional if name in table.column_names}
        kept = table.column_names if reading.kept is None else reading.kept
        for name in (*names.values(), *kept):
            if table.column_names.count(name) != 1:
                _refuse_column(name, table.column_names, source, is_text=name == names.get(TEXT))
        try:
            texts = {name: as_strings(_numbers_as_text(table[column]), column) for name, column in names.items()}
            read = pa.table(texts)
            read.validate(full=True)  # files do not promise that strings are UTF-8
        except (DataError, pa.ArrowInvalid) as error:
            raise DataError(f"{source}: {error}") from error
        return cls(read, table.select(list(kept)))


def find_files(source: str | Path) -> list[Path]:
    """Return the file, or the files of texts in a folder and its folders; hidden ones and `_NAME` are left out."""
    path = Path(source)
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise DataError(f"texts must be in a file or a folder of files, there is no {path}")
    inside = (file for file in sorted(path.rglob("*")) if file.is_file() and bare_suffix(file) in _SUFFIXES)
    files = [file for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    if not files:
        raise DataError(f"{path} must hold files of texts ({', '.join(_SUFFIXES)}), it has none")
    return files


def cut_into_blocks(files: Iterable[Path], block_texts: int, format: str | None = None) -> list[TextBlock]:
    """Return the blocks of some files, each of about `block_texts` texts where a file can be cut."""
    blocks: list[TextBlock] = []
    for file in files:
        blocks += _blocks_of_parquet(file, block_texts) if _is_parquet(file, format) else [TextBlock(file)]
    return blocks


def count_block(block: TextBlock, format: str | None = None) -> int | None:
    """Return how many texts a block has, for progress bars; None where counting is slow."""
    return block.n_texts if block.stop is not None else count_texts(block.file, format)


def read_block(block: TextBlock, reading: TextReading, batch_texts: int = BATCH_TEXTS) -> Iterator[ReadTexts]:
    """Yield the texts of a block, at most `batch_texts` at a time."""
    if _is_parquet(block.file, reading.format):
        yield from _read_parquet(block, reading, batch_texts)
        return
    wanted = (*reading.columns, *(reading.kept or ()))
    tables = read_texts(
        block.file,
        tuple(dict.fromkeys(wanted)),
        format=reading.format,
        usual_options=reading.usual_options,
        batch_texts=batch_texts,
        **reading.options,
    )
    named = TextReading(reading.columns, reading.optional, reading.kept)  # these tables call the text `text`
    for table in tables:
        yield ReadTexts.of(table, named, str(block.file))


def _is_parquet(file: Path, format: str | None) -> bool:
    return bare_suffix(file) in PARQUET and format in (None, "table")


def _blocks_of_parquet(file: Path, block_texts: int) -> Iterator[TextBlock]:
    import pyarrow.parquet as pq

    try:
        facts = pq.read_metadata(str(file))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"cannot read {file}: {error}") from error
    largest = max((facts.row_group(group).num_rows for group in range(facts.num_row_groups)), default=0)
    step = max(block_texts, -(-largest // _MOST_PARTS))
    for start in range(0, facts.num_rows, step):
        yield TextBlock(file, start, min(start + step, facts.num_rows))


def _read_parquet(block: TextBlock, reading: TextReading, batch_texts: int) -> Iterator[ReadTexts]:
    import pyarrow.parquet as pq

    from longtail.data.formats.table import TableOptions

    known = {name: value for name, value in reading.usual_options.items() if name in TableOptions.model_fields}
    TableOptions.of({**known, **reading.options}, source="format table")
    source = str(block.file)
    try:
        # A row group may be as large as the file: it is read through a buffer, never as a whole.
        with pq.ParquetFile(source, buffer_size=_BUFFER_BYTES, pre_buffer=False) as file:
            groups, skipped = _row_groups(file.metadata, block)
            rows = min(batch_texts, _rows_in(_BATCH_BYTES, file.metadata))
            names = _parquet_columns(file.schema_arrow.names, reading)
            left = block.n_texts
            for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=names):
                table = pa.table(batch).slice(skipped)
                skipped = max(skipped - len(batch), 0)
                table = table if left is None else table.slice(0, left)
                left = None if left is None else left - len(table)
                if len(table):
                    yield ReadTexts.of(table, reading, source)
                if left == 0:
                    return
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # names of columns may be any bytes
        raise DataError(f"cannot read {source}: {error}") from error


def _row_groups(facts: Any, block: TextBlock) -> tuple[list[int], int]:
    """Return the row groups that hold a block, and how many rows come before it in the first of them."""
    groups: list[int] = []
    before = skipped = 0
    for group in range(facts.num_row_groups):
        after = before + facts.row_group(group).num_rows
        if after > block.start and (block.stop is None or before < block.stop):
            skipped = skipped if groups else block.start - before
            groups.append(group)
        before = after
    return groups, skipped


def _rows_in(n_bytes: int, facts: Any) -> int:
    """Return how many rows take so many bytes in the mean."""
    total = sum(int(facts.row_group(group).total_byte_size) for group in range(facts.num_row_groups))
    return max(1, n_bytes * int(facts.num_rows) // max(total, 1))


def _parquet_columns(names: list[str], reading: TextReading) -> list[str] | None:
    """Return the columns of a file that are read or kept; None, which is all, if one is missing and will be named."""
    if reading.kept is None:
        return None
    wanted = {reading.text_column if name == TEXT else name for name in reading.columns} | {*reading.kept}
    return [name for name in names if name in wanted | {*reading.optional}] if wanted <= {*names} else None


def _numbers_as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string()) if pa.types.is_integer(column.type) else column


def _refuse_column(name: str, names: list[str], source: str, *, is_text: bool) -> None:
    got = f"{names.count(name)} of that name" if name in names else f"the columns {', '.join(names)}"
    hint = "" if name in names else did_you_mean(name, names)
    how = "; choose with `text_column`" if is_text else ""
    raise DataError(f"{source} must have one column '{name}', got {got}{hint}{how}")
