"""How kernels are compiled: without the interpreter lock, cached on disk, and announced.

Compiling takes seconds and happens once per machine. `on_compile` lets the command line show a
spinner meanwhile; loading a cached kernel calls nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose floating point order must be kept."""
    return numba.njit(nogil=True, cache=True, error_model="numpy")(function)


def loose_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be reordered, so that loops over lanes become vectors."""
    flags = {"contract", "reassoc", "nsz", "arcp"}
    return numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=flags)(function)


class _Compiling(event.Listener):
    def __init__(self, started: Callable[[], None], ended: Callable[[], None]) -> None:
        self.started, self.ended = started, ended
        self.depth = 0

    def on_start(self, happening: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            self.started()

    def on_end(self, happening: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.ended()


def on_compile(started: Callable[[], None], ended: Callable[[], None]) -> None:
    """Call `started` and `ended` around every compilation from now on."""
    event.register("numba:compile", _Compiling(started, ended))
