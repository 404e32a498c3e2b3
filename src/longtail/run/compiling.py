"""Callbacks for the compilation of kernels. Registering one compiles nothing and does not import numba."""

from __future__ import annotations

from collections.abc import Callable

_LISTENERS: list[tuple[Callable[[], None], Callable[[], None]]] = []


def on_compile(started: Callable[[], None], ended: Callable[[], None]) -> None:
    """Call `started` and `ended` around every compilation from now on."""
    _LISTENERS.append((started, ended))


def announce(begins: bool) -> None:
    """Tell the listeners that a compilation begins or has ended."""
    for started, ended in _LISTENERS:
        (started if begins else ended)()
