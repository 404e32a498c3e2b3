"""Sorting and selecting for other kernels; numba's own take five times as long to be compiled."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel

_SHORT = 32
"""Runs up to this length are sorted by insertion."""


@kernel
def sort_first(keys, n_keys):
    """Do what `reference.order.sort_first` does: quicksort down to short runs, then one insertion sort over all."""
    if n_keys > _SHORT:
        lows, highs = np.empty(64, np.int64), np.empty(64, np.int64)
        n_waiting = np.int64(0)
        low, high = np.int64(0), np.int64(n_keys - 1)
        while True:
            while high - low >= _SHORT:
                pivot = _middle(keys[low], keys[(low + high) >> 1], keys[high])
                i, j = low, high
                while i <= j:
                    while keys[i] < pivot:
                        i += 1
                    while keys[j] > pivot:
                        j -= 1
                    if i <= j:
                        keys[i], keys[j] = keys[j], keys[i]
                        i += 1
                        j -= 1
                if j - low > high - i:  # the larger part waits, so that at most 64 do
                    lows[n_waiting], highs[n_waiting] = low, j
                    low = i
                else:
                    lows[n_waiting], highs[n_waiting] = i, high
                    high = j
                n_waiting += 1
            if n_waiting == 0:
                break
            n_waiting -= 1
            low, high = lows[n_waiting], highs[n_waiting]
    for i in range(1, n_keys):
        key = keys[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            at -= 1
        keys[at] = key


@kernel
def kth_smallest(values, k):
    """Do what `reference.order.kth_smallest` does."""
    low, high = np.int64(0), np.int64(len(values) - 1)
    while low < high:
        pivot = _middle(values[low], values[(low + high) >> 1], values[high])
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k <= j:
            high = j
        elif k >= i:
            low = i
        else:
            break
    return values[k]


@kernel
def _middle(a, b, c):
    return max(min(a, b), min(max(a, b), c))
