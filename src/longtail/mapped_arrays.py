"""Numpy arrays in safetensors files, memory-mapped.

    store_arrays(file, arrays by name)  ->  8 bytes (length of the header), the header (JSON), the arrays one by one
    map_arrays(file)                    ->  the same arrays, read from the disk where they are looked at

Mapped arrays are shared between processes until one writes into them; the file never changes.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longtail.errors import ModelFormatError

Arrays = Mapping[str, np.ndarray[Any, Any]]
"""Numpy arrays by name."""

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _DTYPES.items()}
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError)
"""What can be raised when damaged bytes are read as JSON, as a header or as a manifest."""


def store_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays in the safetensors layout, directly from memory, widest type first so that all are aligned."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {}
    offset = 0
    for name, array in ordered:
        header[name] = {
            "dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes],
        }  # fmt: skip
        offset += array.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        for _, array in ordered:
            out.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def map_arrays(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """Return the arrays of a safetensors file, memory-mapped."""
    try:
        with open(path, "rb") as file:
            data = _MappedFile(file.fileno(), 0, access=mmap.ACCESS_COPY)
        data.path = path
        return data.arrays()
    except (*DAMAGE, OSError) as error:
        raise ModelFormatError(f"{path} is damaged ({error}); save the model again") from error


def file_of(arrays: Arrays) -> Path | None:
    """Return the safetensors file that all of these arrays are mapped from under these names, or None."""
    files = {_mapped_file_of(array) for array in arrays.values()}
    file = files.pop() if len(files) == 1 else None
    if file is None:
        return None
    stored = {name: array.__array_interface__ for name, array in file.arrays().items()}
    return file.path if all(stored.get(name) == array.__array_interface__ for name, array in arrays.items()) else None


class _MappedFile(mmap.mmap):
    """A safetensors file in memory."""

    path: Path

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        start = 8 + int.from_bytes(self[:8], "little")
        header = json.loads(self[8:start])
        header.pop("__metadata__", None)
        return {name: _view(self, start, **facts) for name, facts in header.items()}


def _mapped_file_of(array: np.ndarray[Any, Any]) -> _MappedFile | None:
    base: Any = array
    while isinstance(base, np.ndarray | memoryview):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base if isinstance(base, _MappedFile) else None


def _view(data: mmap.mmap, start: int, dtype: str, shape: list[int], data_offsets: list[int]) -> np.ndarray[Any, Any]:
    kind, count = np.dtype(_DTYPES[dtype]), math.prod(shape)
    first, last = data_offsets
    if min(first, *shape, 0) < 0 or last - first != count * kind.itemsize:
        raise ValueError(f"{dtype} {shape} does not fit in bytes {first} to {last}")
    return np.frombuffer(data, kind, count, start + first).reshape(shape)
