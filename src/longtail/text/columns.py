"""Columns of texts as the bytes that kernels read, some rows at a time.

    Arrow column (n_texts strings)  ->  data: (n_bytes,) uint8, offsets: (n_rows + 1,) int64

The bytes are Arrow's own, not a copy, where the rows lie in one piece and Python need not lower-case them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import as_strings
from longtail.errors import DataError
from longtail.kernels.characters import CONTEXT
from longtail.kernels.native.tokens import needs_python
from longtail.text.fields import FieldOptions

SPAN_BYTES = 1 << 20
"""Texts are read in spans of about so many bytes: enough work for a thread, and little to keep in memory."""

Bytes = tuple[NDArray[np.uint8], NDArray[np.int64]]


def columns_of(table: pa.Table, blocks: Sequence[FieldOptions]) -> list[pa.ChunkedArray]:
    """The column that each block reads, as strings without nulls."""
    return [as_strings(table[block.column], block.column) for block in blocks]


def spans_of(columns: Sequence[pa.ChunkedArray]) -> list[range]:
    """Cut the rows into spans of about SPAN_BYTES; a longer text makes a span of its own."""
    n_texts = len(columns[0])
    ends = np.cumsum(sum(np.asarray(pc.binary_length(column), np.int64) for column in columns))
    # The span of a text is where its last byte falls, so only one text a span can be longer than it.
    last_of_span = np.flatnonzero(np.diff(ends // SPAN_BYTES, append=-1))
    stops = (last_of_span + 1).tolist()
    return [range(start, stop) for start, stop in zip([0, *stops[:-1]], stops, strict=True)] if n_texts else []


def bytes_of(column: pa.ChunkedArray, rows: range, lowercase: bool) -> Bytes:
    """The bytes of some rows; rows with letters that only Python lower-cases are in lower case already."""
    pieces = column.slice(rows.start, len(rows)).chunks
    texts = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
    data, offsets = _buffers(texts)
    if lowercase and needs_python(data[offsets[0] : offsets[-1]]):
        chosen = pc.or_(*(pc.match_substring(texts, letter) for letter in CONTEXT))
        lowered = [text.lower() for text in texts.filter(chosen).to_pylist()]
        data, offsets = _buffers(pc.replace_with_mask(texts, chosen, pa.array(lowered, pa.string())))
    return data, offsets


def bytes_of_text(text: str, lowercase: bool) -> Bytes:
    """The bytes of one text."""
    if not isinstance(text, str):
        raise DataError(f"a text must be a string, got {type(text).__name__}")
    try:
        data = np.frombuffer((text.lower() if lowercase else text).encode(), np.uint8)
    except UnicodeEncodeError as error:
        raise DataError(f"a text must be Unicode, got half a character: {error}") from error
    return data, np.array((0, len(data)), np.int64)


def _buffers(array: pa.StringArray) -> Bytes:
    _, offsets, data = array.buffers()
    window = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    view = np.frombuffer(b"" if data is None else data, np.uint8)
    # Read-only always: to the kernels, arrays that may be written are another type, to be compiled again.
    view.flags.writeable = False
    return view, window
