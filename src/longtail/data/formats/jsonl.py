"""JSON lines: one object per line with a text, a list of labels, and further fields.

    {"text": "…", "labels": ["a", "b"], "title": "…", "year": 1999}  ->  columns text and title

Other fields whose values are all strings become columns; fields with any other value are left out. Arrow parses whole
blocks. A block that it rejects, or where something is missing, is read again line by line, which finds the line of the
error and accepts what only Arrow rejects (integers as labels).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from longtail.data.dataset import TEXT, Split
from longtail.data.formats.batch import ColumnOptions, TextBatch, no_labels
from longtail.data.lines import Block, fault, read_blocks
from longtail.errors import DataError

WRITE_ROWS = 10_000
_MAX_DIGITS = 4300
"""A whole number with more digits is read as a float: Python refuses to make it whole."""
_LABELS = pa.list_(pa.string())
_OBJECT = re.compile(rb"\s*\{")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


class JsonlOptions(ColumnOptions):
    """How JSON lines are read; each field of the objects is a column."""


def read_jsonl(path: Path, options: JsonlOptions, stream: BufferedIOBase | None = None) -> Iterator[TextBatch]:
    """Yield the texts of a file, or of a stream that is already open."""
    known = set(options.fields or ())
    unseen = set(options.fields or ())
    for block in read_blocks(path, options.on_bad_utf8, stream, block_bytes=options.block_bytes):
        batch = _parse(block.data, options, known) or _parse_lines(path, block, options)
        known.update(set(batch.texts.column_names) - {TEXT, *options.numbers})
        unseen -= {name for name in unseen if pc.any(pc.not_equal(batch.texts[name], "")).as_py()}
        if batch.texts.num_rows:
            yield batch
    if unseen:
        raise DataError(f"{path}: every field asked for must hold texts, no line has {', '.join(sorted(unseen))}")


def write_jsonl(split: Split, path: Path) -> None:
    """Write texts with their labels and fields; the suffix decides the compression."""
    ids = np.array(split.vocabulary.ids, dtype=object)
    with pa.output_stream(str(path)) as out:
        for start in range(0, len(split), WRITE_ROWS):
            rows = split.texts.slice(start, WRITE_ROWS).to_pylist()
            for number, row in enumerate(rows, start):
                row["labels"] = ids[split.labels[number]].tolist()
            out.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def _parse(data: bytes, options: JsonlOptions, known: set[str]) -> TextBatch | None:
    """Return a block as Arrow parses it, or None if it must be read line by line."""
    table = _arrow(data, options, known)
    if table is None:
        return None
    others = [f for f in table.schema if f.name not in (options.text_column, options.label_column, TEXT)]
    # Arrow parses strings that look like dates as dates.
    dates = {f.name for f in others if pa.types.is_timestamp(f.type)}
    if dates and options.fields is None:
        table = _arrow(data, options, known | dates)
        if table is None:
            return None
        others = [table.schema.field(f.name) for f in others]
    text = table[options.text_column].combine_chunks()
    labels = no_labels(len(text)) if options.label_column is None else table[options.label_column].combine_chunks()
    flat = labels.flatten()
    complete = not (text.null_count or labels.null_count or flat.null_count)
    if (
        not complete
        or len(text) != data.count(b"\n") + (not data.endswith(b"\n"))
        or pc.any(pc.equal(flat, "")).as_py()
    ):
        return None
    wanted = [f for f in others if options.fields is None or f.name in options.fields]
    kept = [f.name for f in wanted if pa.types.is_string(f.type) or _is_number(f, options)]
    strings = {name: pc.fill_null(table[name].cast(pa.string()), "") for name in kept}
    wrong = frozenset(f.name for f in wanted if f.name not in kept and not pa.types.is_null(f.type))
    return TextBatch(pa.table({TEXT: text, **strings}), labels, not_texts=wrong)


def _is_number(field: pa.Field, options: JsonlOptions) -> bool:
    return field.name in options.numbers and bool(pa.types.is_integer(field.type))


def _arrow(data: bytes, options: JsonlOptions, known: set[str]) -> pa.Table | None:
    if not _OBJECT.match(data):
        return None  # Arrow 26 reads outside its memory where the first value is null
    fields = {**dict.fromkeys(sorted(known), pa.string())}
    fields |= {options.text_column: pa.string()}
    fields |= {} if options.label_column is None else {options.label_column: _LABELS}
    parse = pj.ParseOptions(
        explicit_schema=pa.schema(fields.items()),
        unexpected_field_behavior="infer" if options.fields is None else "ignore",
    )
    try:
        # One block per call: Arrow would otherwise split it elsewhere and lose the line numbers.
        read = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return pj.read_json(pa.BufferReader(data), read, parse)
    except pa.ArrowInvalid:
        return None


def _parse_lines(path: Path, block: Block, options: JsonlOptions) -> TextBatch:
    rows: list[dict[str, Any]] = []
    labels: list[list[str]] = []
    for number, line in enumerate(block.data.split(b"\n"), block.line):
        if line.strip():
            row = _row(path, number, line)
            labels.append(_labels(path, number, row, options))
            rows.append(_texts(path, number, row, options))
    names = dict.fromkeys(options.fields if options.fields is not None else chain.from_iterable(rows))
    wrong = frozenset(name for name in names for row in rows if not isinstance(row.get(name), str | None))
    # The type of a field that is always null here is known from other blocks.
    empty = {name for name in names if all(row.get(name) is None for row in rows)} - set(options.fields or ())
    kept = [TEXT, *(name for name in names if name not in wrong | empty | {TEXT})]
    table = pa.table({name: pa.array([row.get(name) or "" for row in rows], pa.string()) for name in kept})
    return TextBatch(table, pa.array(labels, _LABELS), not_texts=wrong)


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode(), parse_int=_number)
    except (ValueError, RecursionError) as error:
        place = f"column {error.colno}: " if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise fault(path, number, f"{place}a line must be one JSON object: {reason}") from error
    if not isinstance(row, dict):
        raise fault(path, number, f"a line must be one JSON object, got {_kind(row)}")
    return row


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MAX_DIGITS else float(digits)


def _texts(path: Path, number: int, row: dict[str, Any], options: JsonlOptions) -> dict[str, Any]:
    """Return the fields of a row that may become columns, the text among them as `text`."""
    name = options.text_column
    if name not in row:
        raise fault(path, number, f'must have "{name}", got {_names(row)}; text_column names another field')
    if not isinstance(row[name], str):
        raise fault(path, number, f'"{name}" must be a string, got {_kind(row[name])}')
    rest = set(row) - {name, TEXT, options.label_column}
    for asked in options.fields or ():
        if not isinstance(row.get(asked), str | None):
            raise fault(path, number, f'"{asked}" must be a string, got {_kind(row[asked])}')
    wanted = [field for field in row if field in rest and (options.fields is None or field in options.fields)]
    values = {TEXT: row[name], **{field: row[field] for field in wanted}}
    values |= {field: str(values[field]) for field in options.numbers if type(values.get(field)) is int}
    return {field: _unicode(path, number, field, value, options) for field, value in values.items()}


def _labels(path: Path, number: int, row: dict[str, Any], options: JsonlOptions) -> list[str]:
    name = options.label_column
    if name is None:
        return []
    if name not in row:
        what = f'must have "{name}" (a list; [] where a text has none), got {_names(row)}'
        raise fault(path, number, f"{what}; label_column names another field")
    labels = row[name]
    if not isinstance(labels, list):
        raise fault(path, number, f'"{name}" must be a list of label ids, got {_kind(labels)}')
    for label in labels:
        if isinstance(label, bool) or not isinstance(label, str | int):
            raise fault(
                path,
                number,
                f"a label must be a string or a whole number of at most {_MAX_DIGITS:,} digits, got {_kind(label)}",
            )
        if label == "":
            raise fault(path, number, "a label must not be an empty string")
    return [_unicode(path, number, name, str(label), options) for label in labels]


def _unicode(path: Path, number: int, field: str, value: Any, options: JsonlOptions) -> Any:
    """Return a value that UTF-8 can encode: JSON allows half of a surrogate pair."""
    if not isinstance(value, str) or not _LONE_SURROGATE.search(value):
        return value
    if options.on_bad_utf8 == "error":
        what = f'"{field}" must be valid Unicode, got half of a surrogate pair'
        raise fault(path, number, f"{what}; mend it or set `on_bad_utf8=replace`")
    return _LONE_SURROGATE.sub("\ufffd", value)


def _names(row: dict[str, Any]) -> str:
    return ", ".join(f'"{name}"' for name in row) or "no field"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
