"""Stop long work when its time is over.

    run = with_time_limit(run, 300.0)     the same run; work with it raises OutOfTimeError after five minutes

The time is looked at whenever a job ends and whenever progress is reported: work is not stopped inside of a job, so it
may end a little late, by a second or so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from longtail.errors import LongtailError
from longtail.mapped_arrays import Arrays
from longtail.run.engine import Engine, SharedArrays
from longtail.run.progress import Advance, Progress
from longtail.run.run import Run

T = TypeVar("T")
R = TypeVar("R")


class OutOfTimeError(LongtailError):
    """Work that had a time limit was stopped."""


@dataclass(frozen=True)
class Deadline:
    """When work must end."""

    seconds: float
    """How long it may take in all."""
    at: float
    """On the clock of `time.monotonic`."""

    def check(self) -> None:
        """Raise if the time is over."""
        if time.monotonic() > self.at:
            raise OutOfTimeError(f"the work was stopped after {self.seconds:.0f} s, the time that it had")


@dataclass(frozen=True)
class LimitedEngine:
    """An engine that looks at the time whenever a job ends."""

    engine: Engine
    deadline: Deadline

    @property
    def n_threads(self) -> int:
        """Jobs that run at the same time."""
        return self.engine.n_threads

    @property
    def n_local_threads(self) -> int:
        """Threads of this process that a library may use."""
        return self.engine.n_local_threads

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order, or raise when the time is over."""
        self.deadline.check()
        with closing(self.engine.map(function, items)) as results:  # type: ignore[type-var]
            for result in results:
                self.deadline.check()
                yield result

    def share(self, name: str, arrays: Arrays) -> SharedArrays:
        """Return the handle of the engine."""
        return self.engine.share(name, arrays)

    def plain(self) -> dict[str, Any]:
        """Return plain data of the engine without its limit."""
        return self.engine.plain()


@dataclass(frozen=True)
class LimitedProgress:
    """Progress that looks at the time whenever there is some."""

    progress: Progress
    deadline: Deadline

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Return a context for one named step, or raise when the time is over."""
        self.deadline.check()
        with self.progress.step(name, total, unit) as advance:

            def check_and_advance(amount: int, note: str = "") -> None:
                self.deadline.check()
                advance(amount, note)

            yield check_and_advance


def with_time_limit(run: Run, seconds: float | None) -> Run:
    """Return the same run, with which work stops after so many seconds from now; None is no limit."""
    if seconds is None:
        return run
    deadline = Deadline(seconds, time.monotonic() + seconds)
    return replace(run, engine=LimitedEngine(run.engine, deadline), progress=LimitedProgress(run.progress, deadline))
