"""Progress bars on standard error: the step, how much is done, the speed, and the time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Live
from rich.text import Text

from longtail.cli.lines import LONG_S
from longtail.cli.terminal import console as safe_console
from longtail.run.compiling import on_compile
from longtail.run.progress import COMPILING, Advance

SPEED_PERIOD_S = 300.0
"""Speeds are means over so long: some work is reported once a minute."""


class _Amount(ProgressColumn):
    """The column with amount done, total and speed."""

    def render(self, task: Task) -> Text:
        if not task.total and not task.completed:
            return Text("")
        unit = task.fields["unit"]
        total = f" of {task.total:,.0f}" if task.total else ""
        speed = task.finished_speed or task.speed
        rate = f", {speed:,.0f}/s" if speed and task.completed else ""
        note = f", {task.fields['note']}" if task.fields["note"] else ""
        return Text(f"{task.completed:,.0f}{total} {unit}{rate}{note}", style="dim")


class Bars:
    """Draws a bar for each step of a long job; a `Progress` of the library.

    A step leaves a line behind if it did something and took at least `line_after_s` seconds, or took
    long. `live` draws the bars.
    """

    def __init__(self, console: Console | None = None, line_after_s: float = 0.2) -> None:
        self.live = Live(
            SpinnerColumn(),
            TextColumn("{task.description:<20}"),
            BarColumn(18),
            _Amount(),
            TimeRemainingColumn(),
            console=console or safe_console(stderr=True),
            speed_estimate_period=SPEED_PERIOD_S,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),  # results in a pipe are none of the bars' business
        )
        self.line_after_s = line_after_s
        self._lock = RLock()
        self._compiling: TaskID | None = None
        on_compile(self.begin_compiling, self.end_compiling)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Draw a bar for a step and yield the function that advances it."""
        task = self._begin(name, total, unit)
        start = time.monotonic()
        done = 0

        def advance(amount: int, note: str = "") -> None:
            nonlocal done
            done += amount
            self.live.advance(task, amount)
            if note:
                self.live.update(task, note=note)

        try:
            yield advance
        finally:
            self._end(task)
        took_s = time.monotonic() - start
        if took_s >= (self.line_after_s if done else LONG_S):
            amount = f"{done:,} {unit}" if done else ""
            self.live.console.print(f"  {name:<24}{amount:>24}{took_s:>10.1f} s", style="dim", highlight=False)

    def _begin(self, name: str, total: int | None, unit: str) -> TaskID:
        with self._lock:
            task = self.live.add_task(name, total=total, unit=unit, note="")
            self.live.start()
            self.live.refresh()  # short steps are seen too
            return task

    def _end(self, task: TaskID) -> None:
        with self._lock:
            self.live.refresh()
            self.live.remove_task(task)
            if not self.live.tasks:
                self.live.stop()

    def begin_compiling(self) -> None:
        """Show that kernels are being compiled."""
        with self._lock:
            if self._compiling is None:
                self._compiling = self._begin(COMPILING, None, "")

    def end_compiling(self) -> None:
        """Remove the bar of compiling."""
        with self._lock:
            if self._compiling is not None:
                self._end(self._compiling)
                self._compiling = None
