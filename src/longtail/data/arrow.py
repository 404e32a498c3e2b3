"""Arrow arrays laid out by hand: the first `pa.array` of a process imports pandas, where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


def string_array(values: Sequence[bytes]) -> pa.StringArray:
    """Return UTF-8 strings as an Arrow array; all of them together have less than 2 GiB."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(b"".join(values)))


def int_array(values: NDArray[Any]) -> pa.Int64Array:
    """Return whole numbers as an Arrow array."""
    numbers = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)])
