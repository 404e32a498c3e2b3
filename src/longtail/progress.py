"""How long steps tell that they advance. The library only calls this; the CLI draws it.

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
    """Tells how much more is done."""

    def __call__(self, amount: int, note: str = "") -> None:
        """`note` says more, such as the loss of the moment; the last one stands."""


class Progress(Protocol):
    """What a long step needs of its caller."""

    def step(self, name: str, total: int | None = None, unit: str = "") -> AbstractContextManager[Advance]:
        """A context for one named step; the function it yields is called with the amount done."""


class Silent:
    """Progress that nobody watches: the default in Python."""

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """See `Progress.step`."""
        yield _ignore


def _ignore(amount: int, note: str = "") -> None: ...


SILENT = Silent()
