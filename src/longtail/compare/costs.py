"""Measure what a training takes, over all its sittings: it may be killed and continue later."""

from __future__ import annotations

import json
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from longtail.errors import ConfigError
from longtail.files import write_text
from longtail.options import Options
from longtail.run.compiling import on_compile
from longtail.run.local import available_cores
from longtail.run.progress import COMPILING, Advance
from longtail.run.resources import peak_memory_bytes
from longtail.run.run import Run

_TICK_S = 1.0


class Costs(Options):
    """What training took."""

    train_s: float = 0.0
    """Seconds of training over all sittings, without compiling kernels and reading data."""
    sittings: int = 0
    """1 if training was never interrupted."""
    peak_memory_bytes: int | None = None
    gpu_peak_bytes: int = 0
    threads: int = 0
    machine: str = ""
    """Processor and number of cores: times of different machines cannot be compared."""


class CostMeter:
    """Progress that measures a training and keeps the costs in `file` while it advances."""

    def __init__(self, file: Path, run: Run) -> None:
        self.file, self.progress, self.n_threads = file, run.progress, run.engine.n_threads
        try:
            self.before = Costs.of(json.loads(file.read_bytes()))
        except (OSError, ValueError, ConfigError):
            self.before = Costs()
        self._compiled_s = self._written = 0.0
        self._measuring = False
        self._start = time.monotonic()

    def __enter__(self) -> CostMeter:
        shown = ExitStack()
        began = 0.0

        def started() -> None:
            nonlocal began
            began = time.monotonic()
            if self._measuring:
                shown.enter_context(self.progress.step(COMPILING))

        def ended() -> None:
            shown.close()
            self._compiled_s += time.monotonic() - began

        on_compile(started, ended)
        self._start, self._measuring = time.monotonic(), True
        return self

    def __exit__(self, *error: object) -> None:
        self._measuring = False
        self._write()

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Open a step and write down the costs when it advances."""
        self._tick()
        with self.progress.step(name, total, unit) as show:

            def advance(amount: int, note: str = "") -> None:
                self._tick()
                show(amount, note)

            yield advance

    def costs(self) -> Costs:
        """Return the costs of all sittings so far."""
        return Costs(
            train_s=self.before.train_s + time.monotonic() - self._start - self._compiled_s,
            sittings=self.before.sittings + 1,
            peak_memory_bytes=max(self.before.peak_memory_bytes or 0, peak_memory_bytes() or 0) or None,
            gpu_peak_bytes=max(self.before.gpu_peak_bytes, _gpu_bytes()),
            threads=self.n_threads,
            machine=f"{platform.processor() or platform.machine()}, {available_cores()} cores",
        )

    def _tick(self) -> None:
        if time.monotonic() - self._written > _TICK_S:
            self._written = time.monotonic()
            self._write()

    def _write(self) -> None:
        write_text(self.file, json.dumps(self.costs().plain()))


def _gpu_bytes() -> int:
    if "torch" not in sys.modules:
        return 0
    from longtail.nn.training.devices import gpu_bytes

    return gpu_bytes()
