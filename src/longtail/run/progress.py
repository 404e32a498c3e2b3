"""How long steps report their progress. The library only calls this; the command line draws it.

with progress.step("weights", total=n_nodes) as advance:
    ...
    advance(1)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

COMPILING = "compiling (once on this machine)"
"""The step that is shown while kernels are compiled."""


class Advance(Protocol):
    """Reports that more is done."""

    def __call__(self, amount: int, note: str = "") -> None:
        """Add `amount`; `note` says more, such as the current loss, and replaces the last one."""


class Progress(Protocol):
    """Shows the steps of long work."""

    def step(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """Return a context for one named step; the function it yields is called with the amount done."""


class Silent:
    """Shows nothing: the default in Python."""

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Return a context whose function does nothing."""
        yield _ignore


def _ignore(amount: int, note: str = "") -> None: ...


SILENT = Silent()
