"""Whether arrays that were read from disk fit together, so that kernels never read outside them.

Kernels trust pointers and numbers, and a folder may hold anything: bits may have flipped in it, or somebody wrote it by
hand. Each part checks its own arrays once, when they are opened:

    arrays = Structure(folder.arrays("pool"), "pool")
    rows = arrays.numbers("rows", np.int32, below=n_rows)
    arrays.pointers("ptr", to=rows)

What is only multiplied need not be read for that: a flipped bit of a weight is found by checksums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from longtail.errors import ModelFormatError
from longtail.mapped_arrays import Arrays

Array = NDArray[Any]


class Structure:
    """Arrays by name, each of which is checked when it is taken."""

    def __init__(self, arrays: Arrays, where: str) -> None:
        self.arrays, self.where = arrays, where

    def array(self, name: str, *kinds: DTypeLike, shape: tuple[int | None, ...] = (None,)) -> Array:
        """Return an array of one of these number types, and of this shape; None stands for any length."""
        if name not in self.arrays:
            raise self._wrong(name, "be there", "no such array")
        array = self.arrays[name]
        if array.dtype not in [np.dtype(kind) for kind in kinds] or not array.flags.aligned:
            raise self._wrong(name, f"hold {' or '.join(str(np.dtype(kind)) for kind in kinds)}", array.dtype)
        if len(array.shape) != len(shape) or any(w not in (None, g) for w, g in zip(shape, array.shape, strict=True)):
            raise self._wrong(name, f"have the shape {shape}".replace("None", "any"), array.shape)
        return array

    def numbers(self, name: str, *kinds: DTypeLike, below: int, least: int = 0, n: int | None = None) -> Array:
        """Return n whole numbers from `least` to below `below`."""
        array = self.array(name, *kinds, shape=(n,))
        if len(array) and (int(array.min()) < least or int(array.max()) >= below):
            raise self._wrong(name, f"lie from {least} to below {below:,}", f"{array.min():,} to {array.max():,}")
        return array

    def pointers(self, name: str, to: Array | int, n: int | None = None) -> NDArray[np.int64]:
        """Return where each of n groups of `to` begins, and where the last one ends: int64 (n + 1,)."""
        ptr = self.array(name, np.int64, shape=(None if n is None else n + 1,))
        end = to if isinstance(to, int) else len(to)
        if not len(ptr) or ptr[0] != 0 or ptr[-1] != end or (ptr[1:] < ptr[:-1]).any():
            raise self._wrong(name, f"rise from 0 to {end:,}", "something else")
        return ptr

    def finite(self, name: str, *kinds: DTypeLike, shape: tuple[int | None, ...] = (None,)) -> Array:
        """Return an array without NaN and infinity."""
        array = self.array(name, *kinds, shape=shape)
        # A sum is finite only if all numbers are, unless it overflows; it needs no memory.
        if not np.isfinite(array.sum(dtype=np.float32)) and not np.isfinite(array).all():
            raise self._wrong(name, "hold finite numbers", "NaN or infinity")
        return array

    def require(self, name: str, holds: bool, wanted: str) -> None:
        """Raise if something else about an array does not hold."""
        if not holds:
            raise self._wrong(name, wanted, "something else")

    def _wrong(self, name: str, wanted: str, got: Any) -> ModelFormatError:
        return ModelFormatError(
            f"{self.where} is damaged: {name} must {wanted}, got {got}; copy the model folder again, or train it anew"
        )
