"""Bars on standard error: what is being done, how much of it, how fast, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Live
from rich.text import Text

from longtail.progress import COMPILING, Advance

WORTH_A_LINE_S = 0.2
"""A step that took longer leaves a line behind."""


class _Amount(ProgressColumn):
    """Done, of how many, and how fast."""

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
    """Draws the steps of a long job; see `longtail.progress.Progress`."""

    def __init__(self, console: Console | None = None) -> None:
        columns = SpinnerColumn(), TextColumn("{task.description:<20}"), BarColumn(18), _Amount(), TimeRemainingColumn()
        self._live = Live(*columns, console=console or Console(stderr=True), transient=True)
        self._lock = RLock()
        self._compiling: TaskID | None = None
        from longtail.kernels.native.jit import on_compile

        on_compile(self._compile, self._compiled)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """See `Progress.step`."""
        task = self._begin(name, total, unit)
        start = time.monotonic()
        done = 0

        def advance(amount: int, note: str = "") -> None:
            nonlocal done
            done += amount
            self._live.advance(task, amount)
            if note:
                self._live.update(task, note=note)

        try:
            yield advance
        finally:
            self._end(task)
        took_s = time.monotonic() - start
        if took_s >= WORTH_A_LINE_S:
            amount = f"{done:,} {unit}" if done else ""
            self._live.console.print(f"  {name:<24}{amount:>24}{took_s:>10.1f} s", style="dim", highlight=False)

    def _begin(self, name: str, total: int | None, unit: str) -> TaskID:
        with self._lock:
            task = self._live.add_task(name, total=total, unit=unit, note="")
            self._live.start()
            return task

    def _end(self, task: TaskID) -> None:
        with self._lock:
            self._live.remove_task(task)
            if not self._live.tasks:
                self._live.stop()

    def _compile(self) -> None:
        with self._lock:
            if self._compiling is None:
                self._compiling = self._begin(COMPILING, None, "")

    def _compiled(self) -> None:
        with self._lock:
            if self._compiling is not None:
                self._end(self._compiling)
                self._compiling = None
