"""Sorting and selecting for other kernels.

sort_first(keys, n)       the first n keys ascending, in place
kth_smallest(values, k)   what would stand at place k of the sorted values, which are left in any order
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def sort_first(keys: NDArray[np.int64], n_keys: int) -> None:
    """Sort the first `n_keys` keys in place."""
    keys[:n_keys].sort()


def kth_smallest(values: NDArray[np.float32], k: int) -> Any:
    """Return the value at place `k`, from 0, of the sorted values; the values may be put into another order."""
    values.partition(k)
    return values[k]
