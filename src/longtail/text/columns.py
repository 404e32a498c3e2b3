"""Columns of texts as the bytes that kernels read, some rows at a time.

    Arrow column (n_texts strings)  ->  data: (n_bytes,) uint8, offsets: (n_rows + 1,) int64

The bytes are Arrow's own, not a copy, if the rows lie in one chunk and Python need not lower-case them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import as_strings
from longtail.errors import DataError
from longtail.kernels.characters import CONTEXT
from longtail.kernels.native.tokens import needs_python
from longtail.mapped_arrays import Arrays
from longtail.run.engine import Engine, SharedArrays
from longtail.text.fields import FieldOptions

SPAN_BYTES = 1 << 20
"""Texts are read in spans of about so many bytes: enough work for a job, and little to keep in memory."""

Bytes = tuple[NDArray[np.uint8], NDArray[np.int64]]


def columns_of(table: pa.Table, blocks: Sequence[FieldOptions]) -> list[pa.ChunkedArray]:
    """Return the column that each block reads, as strings without nulls."""
    return [as_strings(table[block.column], block.column) for block in blocks]


@dataclass(frozen=True)
class SharedColumns:
    """A handle of columns of texts, for the specs of jobs."""

    buffers: SharedArrays
    n_chunks: tuple[int, ...]
    """Arrow chunks of each column."""

    @classmethod
    def of(cls, columns: Sequence[pa.ChunkedArray], engine: Engine) -> SharedColumns:
        """Share the bytes of the columns; Arrow's own are not copied."""
        buffers: dict[str, NDArray[Any]] = {}
        for number, column in enumerate(columns):
            for at, chunk in enumerate(column.chunks):
                buffers[f"{number}.{at}.data"], buffers[f"{number}.{at}.offsets"] = _buffers(chunk)
        return cls(engine.share("texts", buffers), tuple(column.num_chunks for column in columns))

    def open(self) -> list[pa.ChunkedArray]:
        """Return the columns."""
        buffers = self.buffers.open()
        return [
            pa.chunked_array([_strings(buffers, f"{number}.{at}") for at in range(n)], pa.string())
            for number, n in enumerate(self.n_chunks)
        ]


def spans_of(columns: Sequence[pa.ChunkedArray], span_bytes: int = SPAN_BYTES) -> list[range]:
    """Cut the rows into spans of about `span_bytes`; a longer text makes a span of its own."""
    n_texts = len(columns[0])
    ends = np.cumsum(sum(np.asarray(pc.binary_length(column), np.int64) for column in columns))
    # The span of a text is where its last byte falls, so only one text of a span can be longer than it.
    last_of_span = np.flatnonzero(np.diff(ends // span_bytes, append=-1))
    stops = (last_of_span + 1).tolist()
    return [range(start, stop) for start, stop in zip([0, *stops[:-1]], stops, strict=True)] if n_texts else []


def bytes_of(column: pa.ChunkedArray, rows: range, lowercase: bool) -> Bytes:
    """Return the bytes of some rows; rows with letters that only Python lower-cases are in lower case already."""
    chunks = column.slice(rows.start, len(rows)).chunks
    texts = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
    data, offsets = _bytes(texts)
    if lowercase and needs_python(data[offsets[0] : offsets[-1]]):
        chosen = pc.or_(*(pc.match_substring(texts, letter) for letter in CONTEXT))
        lowered = [text.lower() for text in texts.filter(chosen).to_pylist()]
        data, offsets = _bytes(pc.replace_with_mask(texts, chosen, pa.array(lowered, pa.string())))
    return data, offsets


def bytes_of_text(text: str, lowercase: bool) -> Bytes:
    """Return the bytes of one text."""
    if not isinstance(text, str):
        raise DataError(f"a text must be a string, got {type(text).__name__}")
    try:
        data = np.frombuffer((text.lower() if lowercase else text).encode(), np.uint8)
    except UnicodeEncodeError as error:
        raise DataError(f"a text must be Unicode, got half a character: {error}") from error
    return data, np.array((0, len(data)), np.int64)


def _bytes(array: pa.StringArray) -> Bytes:
    data, offsets = _buffers(array)
    # Read-only always: to the kernels, arrays that may be written are another type, to be compiled again.
    data.flags.writeable = False
    return data, offsets.astype(np.int64)


def _buffers(array: pa.StringArray) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return the memory of an Arrow array, with the offsets of its own texts."""
    _, offsets, data = array.buffers()
    window = np.frombuffer(b"\0" * 4 if offsets is None else offsets, np.int32)
    return np.frombuffer(b"" if data is None else data, np.uint8), window[array.offset : array.offset + len(array) + 1]


def _strings(buffers: Arrays, name: str) -> pa.StringArray:
    """Return the Arrow array of which `_buffers` gave these."""
    data, offsets = buffers[f"{name}.data"], buffers[f"{name}.offsets"]
    return pa.StringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data))
