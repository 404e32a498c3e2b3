"""Progress as plain lines, for pipes and log files: a step that takes long says every few seconds how far it is.

label weights: 12%, 1,234 of 10,000 labels, 396/s, about 22.1 s left
label weights: 10,000 labels in 25.3 s
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, RLock, Thread

from longtail.cli.terminal import shown
from longtail.run.compiling import on_compile
from longtail.run.progress import COMPILING, Advance
from longtail.units import in_seconds

LONG_S = 2.0
"""A step that takes as long is spoken of."""
PAUSE_S = 5.0
"""Time between two lines, at first."""
LONGEST_PAUSE_S = 60.0
SHARE_OF_TIME = 0.05
"""The pause grows with the time that a step has taken, so that a training of hours leaves hundreds of lines."""


def say(text: str) -> None:
    """Write a line on standard error; where bars are drawn it comes above them."""
    sys.stderr.write(f"{shown(text)}\n")  # not with typer.echo, which goes past the bars to the terminal itself
    sys.stderr.flush()


@dataclass(eq=False)
class _Step:
    name: str
    total: int | None
    unit: str
    done: int = 0
    note: str = ""
    start: float = field(default_factory=time.monotonic)

    @property
    def took_s(self) -> float:
        return time.monotonic() - self.start

    def status(self) -> str:
        """Return how far the step is."""
        so_far = f"{in_seconds(self.took_s)} so far"
        amount = f"{self.done:,} {self.unit}".rstrip()
        if self.done and self.total:
            left_s = self.took_s * max(self.total / self.done - 1, 0)
            rate = f", {self.done / self.took_s:,.0f}/s" if self.done >= self.took_s > 0 else ""
            amount = f"{self.done / self.total:.0%}, {self.done:,} of {self.total:,} {self.unit}".rstrip() + rate
            so_far = f"about {in_seconds(left_s)} left"
        return f"{self.name}: " + ", ".join(filter(None, (amount if self.done else "", self.note, so_far)))


class PlainLines:
    """Writes a line about the innermost step that takes long; a `Progress` of the library.

    `write` gets the lines. Steps that end before `long_s` leave none.
    """

    def __init__(self, write: Callable[[str], None] = say, long_s: float = LONG_S, pause_s: float = PAUSE_S) -> None:
        self.write, self.long_s, self.pause_s = write, long_s, pause_s
        self._steps: list[_Step] = []
        self._next = 0.0
        self._lock, self._idle = RLock(), Event()
        self._compiling: ExitStack | None = None
        on_compile(self.begin_compiling, self.end_compiling)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Speak of a step while it is open, and yield the function that advances it."""
        step = _Step(name, total, unit)

        def advance(amount: int, note: str = "") -> None:
            step.done, step.note = step.done + amount, note or step.note

        with self._open(step):
            yield advance
        if step.took_s >= self.long_s:
            amount = f"{step.done:,} {unit} in " if step.done else ""
            self.write(f"{name}: {amount}{in_seconds(step.took_s)}")

    def command(self, name: str) -> AbstractContextManager[None]:
        """Speak of a whole command while none of its steps takes long."""
        return self._open(_Step(name, None, ""))

    def begin_compiling(self) -> None:
        """Speak of compiling from now on, if it happens within a step."""
        with self._lock:
            if self._steps and self._compiling is None:
                self._compiling = ExitStack()
                self._compiling.enter_context(self._open(_Step(COMPILING, None, "")))

    def end_compiling(self) -> None:
        """Compiling has ended."""
        with self._lock:
            if self._compiling is not None:
                self._compiling.close()
                self._compiling = None

    @contextmanager
    def _open(self, step: _Step) -> Iterator[None]:
        with self._lock:
            self._steps.append(step)
            if len(self._steps) == 1:
                self._idle = Event()
                Thread(target=self._watch, args=(self._idle,), daemon=True).start()
        try:
            yield
        finally:
            with self._lock:
                self._steps.remove(step)
                if not self._steps:
                    self._idle.set()

    def _watch(self, idle: Event) -> None:
        """Write the lines until no step is open."""
        while not idle.wait(self.long_s / 4):
            with self._lock, suppress(OSError, ValueError):  # the reader of the pipe may be gone
                long = [step for step in self._steps if step.took_s >= self.long_s]
                if long and time.monotonic() >= self._next:
                    self.write(long[-1].status())
                    pause_s = max(self.pause_s, min(SHARE_OF_TIME * long[-1].took_s, LONGEST_PAUSE_S))
                    self._next = time.monotonic() + pause_s


LINES = PlainLines()
"""Those of the running command."""
