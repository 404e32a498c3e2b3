"""Arrays that grow at their end, so that hardly more than the whole is ever held.

    append({"bias": (3,), "row_feature": (90,)}, share)  …  arrays() -> {"bias": (n,), "row_feature": (m,)}

Thousands of small arrays that are joined at the end would be held twice, and their memory is rarely given back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.text.gathered import room_for


class GrowingArrays:
    """Named arrays; their types widen where what is appended needs it."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {}
        self._lengths: dict[str, int] = {}

    def append(self, more: Mapping[str, NDArray[Any]], share: float) -> None:
        """Append to each array; with `more`, about this share of the whole is here."""
        if share >= 1 and not self._arrays and all(values.flags.owndata for values in more.values()):
            self._arrays, self._lengths = dict(more), {key: len(values) for key, values in more.items()}
            return
        for key, values in more.items():
            start = self._lengths.get(key, 0)
            stop = start + len(values)
            array = self._arrays.get(key, np.empty(0, values.dtype))
            kind = np.promote_types(array.dtype, values.dtype)
            if stop > len(array) or kind != array.dtype:
                larger = np.empty(max(room_for(stop, share), len(array)), kind)
                larger[:start] = array[:start]
                array = larger
            array[start:stop] = values
            self._arrays[key], self._lengths[key] = array, stop

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the whole; nothing may be appended after that."""
        for key, array in self._arrays.items():
            if len(array) > self._lengths[key]:
                array.resize(self._lengths[key], refcheck=False)
        return self._arrays
