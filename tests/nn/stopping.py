"""A run that is stopped in the middle of a training."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from longtail.run.progress import Advance


class Stopped(Exception):
    """Stands for a kill."""


class Counted:
    """Progress that counts the steps of trainings, and stops the run at one of them."""

    def __init__(self, last: int | None = None) -> None:
        self.n, self.last = 0, last

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        self.n -= name == "train"  # it first tells what it has done before

        def advance(amount: int, note: str = "") -> None:
            self.n += name == "train"
            if self.n == self.last:
                raise Stopped

        yield advance
