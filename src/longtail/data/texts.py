"""Read texts to be tagged from a file or a stream in batches: memory does not grow with the file.

    texts.txt                one text per line; blank lines count, so that answer n belongs to line n
    texts.jsonl              one object per line with the fields that the model reads
    texts.csv .tsv .parquet  one column per field
        ->  Arrow tables of at most `BATCH_TEXTS` texts

Labels in the file are ignored. The readers of data sets are imported only when they are needed, so that tagging
lines of text starts fast.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from io import BufferedIOBase
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import pyarrow as pa

from longtail.data.dataset import TEXT
from longtail.data.lines import bare_suffix, read_blocks, read_lines
from longtail.errors import ConfigError, DataError, did_you_mean

if TYPE_CHECKING:
    from longtail.data.formats.batch import ColumnOptions

TextFormat: TypeAlias = Literal["lines", "jsonl", "table"]

BATCH_TEXTS = 8192
JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
TABLES = (".csv", ".tsv", ".parquet", ".pq")


def text_format(path: Path, name: str | None = None) -> TextFormat:
    """Return the format `name`, or by default the one that a file of this name has."""
    if name is not None:
        if name not in get_args(TextFormat):
            known = ", ".join(get_args(TextFormat))
            raise ConfigError(f"format must be one of {known}, got '{name}'{did_you_mean(name, get_args(TextFormat))}")
        return cast(TextFormat, name)
    suffix = bare_suffix(path)
    return "table" if suffix in TABLES else "jsonl" if suffix in JSON_LINES else "lines"


def read_texts(
    path: str | Path,
    columns: Sequence[str] = (TEXT,),
    *,
    format: str | None = None,
    usual_options: Mapping[str, Any] = MappingProxyType({}),
    stream: BufferedIOBase | None = None,
    batch_texts: int = BATCH_TEXTS,
    **options: Any,
) -> Iterator[pa.Table]:
    """Yield tables with at least `columns`, and with all further columns of texts.

    Args:
        path: The file; with a `stream` that is open already, it only names it in messages.
        columns: Columns that texts must have; whole numbers in them are read as texts.
        format: `lines`, `jsonl` or `table`; by default the file's name tells.
        usual_options: Options of the format where it has them and `options` does not name them.
        stream: An open stream to read instead of a file.
        batch_texts: At most so many texts are in a table.
        options: Options of the format, for example `text_column` or `on_bad_utf8`.
    """
    path = Path(path)
    kind = text_format(path, format)
    if stream is None and not path.is_file():
        raise DataError(f"texts must be in a file, there is no file {path}")
    if stream is not None and kind == "table":
        raise DataError("tables must be files; texts that are piped in must be lines or JSON lines")
    empty = True
    kept = {"label_column": None, "numbers": tuple(columns)}
    checked = _options(kind, dict(usual_options), options | kept)
    for texts in _tables(path, kind, checked, stream):
        texts = with_text_column(texts, checked.text_column, columns)
        missing = next((name for name in columns if name not in texts.column_names), None)
        if missing is not None:
            hint = "a plain line has only 'text'; use JSON lines or a table" if kind == "lines" else "add it"
            hint += did_you_mean(missing, texts.column_names)
            raise DataError(f"{path}: the field '{missing}' is wanted, which is not there; {hint}")
        for start in range(0, len(texts), batch_texts):
            empty = False
            yield texts.slice(start, batch_texts)
    if empty:
        raise DataError(f"{path} must hold at least one text, it is empty")


def count_texts(path: str | Path, format: str | None = None) -> int | None:
    """Return how many texts a file has, for progress bars; None for tables, where counting is slow."""
    path = Path(path)
    if text_format(path, format) == "table":
        return None
    return sum(block.data.count(b"\n") + (not block.data.endswith(b"\n")) for block in read_blocks(path, "replace"))


def _options(kind: TextFormat, usual: Mapping[str, Any], options: Mapping[str, Any]) -> ColumnOptions:
    """Return the checked options of a format."""
    from longtail.data.formats.batch import ColumnOptions

    known: type[ColumnOptions] = ColumnOptions
    if kind == "jsonl":
        from longtail.data.formats.jsonl import JsonlOptions

        known = JsonlOptions
    elif kind == "table":
        from longtail.data.formats.table import TableOptions

        known = TableOptions
    usual = {name: usual[name] for name in usual if name in known.model_fields}
    return known.of({**usual, **options}, source=f"format {kind}")


def _tables(path: Path, kind: TextFormat, options: ColumnOptions, stream: BufferedIOBase | None) -> Iterator[pa.Table]:
    if kind == "lines":
        for block in read_lines(path, options.on_bad_utf8, stream):
            yield pa.table({TEXT: block.lines})
    elif kind == "jsonl":
        from longtail.data.formats import jsonl

        for batch in jsonl.read_jsonl(path, cast(jsonl.JsonlOptions, options), stream):
            yield batch.texts
    else:
        from longtail.data.formats import table

        for source in table.read(path, cast(table.TableOptions, options)).splits.values():
            for batch in source.batches:
                yield batch.texts


def with_text_column(texts: pa.Table, text_column: str, columns: Collection[str]) -> pa.Table:
    """Return texts with the column that holds the text under its own name too, if that is among `columns`."""
    if text_column not in columns or text_column in texts.column_names:
        return texts
    return texts.append_column(text_column, texts[TEXT])
