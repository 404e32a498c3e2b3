"""Texts that are to be tagged, from a file or a stream, some at a time: memory does not grow with the file.

    texts.txt                one text a line; blank lines count, so that answers stand on the lines of their texts
    texts.jsonl              one object a line with the fields that the model reads
    texts.csv .tsv .parquet  a column each
        ->  Arrow tables of at most `BATCH_TEXTS` texts

Labels in the file are not looked at. The formats of data sets are loaded only where they are needed: whoever tags
lines of text should not wait for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from longtail.data.dataset import TEXT
from longtail.data.lines import OnBadUtf8, bare_suffix, read_blocks, read_lines
from longtail.errors import DataError

TextFormat: TypeAlias = Literal["lines", "jsonl", "table"]

BATCH_TEXTS = 8192
JSON_LINES = (".jsonl", ".ndjson", ".jsonlines")
TABLES = (".csv", ".tsv", ".parquet", ".pq")


def text_format(path: Path) -> TextFormat:
    """How texts are stored in a file of this name."""
    suffix = bare_suffix(path)
    return "table" if suffix in TABLES else "jsonl" if suffix in JSON_LINES else "lines"


def read_texts(
    path: str | Path,
    columns: Sequence[str] = (TEXT,),
    optional: Sequence[str] = (),
    *,
    format: TextFormat | None = None,
    text_column: str = TEXT,
    on_bad_utf8: OnBadUtf8 = "error",
    stream: BufferedIOBase | None = None,
) -> Iterator[pa.Table]:
    """Tables with at least `columns`, and with those of `optional` that are there.

    With a `stream` that is open already, `path` only names it in messages.
    """
    path = Path(path)
    format = format or text_format(path)
    if stream is None and not path.is_file():
        raise DataError(f"texts must be in a file, there is no file {path}")
    if stream is not None and format == "table":
        raise DataError("tables must be files; texts that are piped in must be lines or JSON lines")
    empty = True
    options: dict[str, Any] = {"text_column": text_column, "label_column": None, "on_bad_utf8": on_bad_utf8}
    if format == "table":
        options |= {"fields": _without_text(columns), "optional_fields": _without_text(optional)}
    for texts in _tables(path, format, options, stream):
        missing = next((name for name in columns if name not in texts.column_names), None)
        if missing is not None:
            kind = "a plain line has only 'text'; use JSON lines or a table" if format == "lines" else "add it"
            raise DataError(f"{path}: the model reads the field '{missing}', which is not there; {kind}")
        for start in range(0, len(texts), BATCH_TEXTS):
            empty = False
            yield texts.slice(start, BATCH_TEXTS)
    if empty:
        raise DataError(f"{path} must hold at least one text, it is empty")


def count_texts(path: str | Path, format: TextFormat | None = None) -> int | None:
    """How many texts a file has, where that can be told fast: for progress bars."""
    path = Path(path)
    if (format or text_format(path)) == "table":
        return None
    return sum(block.data.count(b"\n") + (not block.data.endswith(b"\n")) for block in read_blocks(path, "replace"))


def _tables(
    path: Path, format: TextFormat, options: dict[str, Any], stream: BufferedIOBase | None
) -> Iterator[pa.Table]:
    if format == "lines":
        for block in read_lines(path, options["on_bad_utf8"], stream):
            yield pa.table({TEXT: block.lines})
    elif format == "jsonl":
        from longtail.data.formats.jsonl import JsonlOptions, read_jsonl

        for batch in read_jsonl(path, JsonlOptions.of(options), stream):
            yield batch.texts
    else:
        from longtail.data.formats import table

        for source in table.read(path, table.TableOptions.of(options)).splits.values():
            for batch in source.batches:
                yield batch.texts


def _without_text(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in columns if name != TEXT)
