"""Several processes that answer on one socket: they are started, watched, told to reload, and ended together.

Models are mapped files, so that the workers share their weights. A worker is the same command, started again with the
socket in its environment.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType

from prometheus_client.multiprocess import mark_process_dead

from longtail.errors import ConfigError, LongtailError
from longtail.serve.about import SUPERVISOR
from longtail.serve.metrics import FOLDER
from longtail.serve.problems import LOG
from longtail.serve.process import SOCKET

_LOOK_S = 0.1
_SHORT_LIFE_S = 5.0
_MOST_FAILURES = 3
_EXTRA_S = 5
"""How much longer than its own limit a worker may take to end before it is killed."""


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.monotonic)


class Supervisor:
    """Keeps workers alive."""

    def __init__(self, command: Sequence[str], n_workers: int, listener: socket.socket, drain_s: int) -> None:
        if os.name != "posix":
            raise ConfigError(f"`workers` must be 1 on this system, got {n_workers}; start several servers instead")
        self.command, self.n_workers, self.listener, self.drain_s = command, n_workers, listener, drain_s
        self._workers: list[_Worker] = []
        self._stops = False

    def run(self) -> None:
        """Start the workers and watch them until SIGTERM or SIGINT; raise if they cannot be kept alive."""
        handlers = {signal.SIGTERM: self._stop, signal.SIGINT: self._stop, signal.SIGHUP: self._pass_on}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            with tempfile.TemporaryDirectory(prefix="longtail-metrics-") as folder:
                try:
                    self._watch(folder)
                finally:
                    self._end()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _watch(self, folder: str) -> None:
        failures = 0
        self._workers = [self._started(folder) for _ in range(self.n_workers)]
        while not self._stops:
            for place, worker in enumerate(self._workers):
                code = worker.process.poll()
                if code is None or self._stops:
                    continue
                lived_s = time.monotonic() - worker.started
                failures = failures + 1 if lived_s < _SHORT_LIFE_S else 0
                if failures >= _MOST_FAILURES:
                    raise LongtailError(
                        f"workers end as soon as they start (exit code {code}); start one alone to see why"
                    )
                LOG.warning("a worker has ended (exit code %s) and is started again", code)
                with suppress(OSError):
                    mark_process_dead(worker.process.pid, folder)  # type: ignore[no-untyped-call]
                self._workers[place] = self._started(folder)
            time.sleep(_LOOK_S)

    def _started(self, folder: str) -> _Worker:
        descriptor = self.listener.fileno()
        environment = {**os.environ, SOCKET: str(descriptor), SUPERVISOR: str(os.getpid()), FOLDER: folder}
        return _Worker(subprocess.Popen(self.command, env=environment, pass_fds=[descriptor], stdin=subprocess.DEVNULL))

    def _end(self) -> None:
        """End all workers; those that take too long are killed."""
        self._signal(signal.SIGTERM)
        end = time.monotonic() + self.drain_s + _EXTRA_S
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()

    def _signal(self, number: int) -> None:
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stops = True

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self._signal(number)
