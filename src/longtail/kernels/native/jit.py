"""How kernels are compiled: without the interpreter lock, cached on disk, and announced.

Compiling takes seconds and happens once per machine. The listeners of `run.compiling` hear of it; loading a cached
kernel calls nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from longtail.run.compiling import announce


class _Cache(FunctionCache):
    """numba's cache, but a kernel found in it is run at once.

    numba itself first loads everything that compiling may need, which takes longer (0.3 s) than opening a model and
    tagging a text. Compiled code needs the runtime alone; compiling loads the rest.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose floating point order must be kept."""
    return _cached(numba.njit(nogil=True, error_model="numpy")(function))


def loose_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function whose sums may be reordered, so that loops over lanes become vectors."""
    flags = {"contract", "reassoc", "nsz", "arcp"}
    return _cached(numba.njit(nogil=True, error_model="numpy", fastmath=flags)(function))


def _cached(dispatcher: Any) -> Callable[..., Any]:
    if all(hasattr(FunctionCache, name) for name in ("_load_overload", "_guard_against_spurious_io_errors")):
        dispatcher._cache = _Cache(dispatcher.py_func)
    else:  # another numba than those we know: its own cache, which starts more slowly
        dispatcher.enable_caching()
    return dispatcher  # type: ignore[no-any-return]


class _Compiling(event.Listener):
    """Announces compiling; kernels that are compiled for another one belong to it."""

    depth = 0

    def on_start(self, happening: Any) -> None:
        self.depth += 1
        if self.depth == 1:
            announce(begins=True)

    def on_end(self, happening: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            announce(begins=False)


event.register("numba:compile", _Compiling())
