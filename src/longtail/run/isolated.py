"""Run a job in a separate process: its memory is its own, and if it crashes, this process goes on.

    here:   run_apart(command, job, progress, say, log)  ->  Ended(result, error)
    there:  answer(work)                                     calls work(job, progress) and sends what it returns

Both exchange lines of JSON. The job is the first line of the other process's standard input, which then stays open:
when it closes, this process is gone, and the other one ends at once (longtail writes folders whole or not at all).
Steps, notes and the result come back on its standard output; what is printed there goes to the log with standard error.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

from longtail.errors import LongtailError
from longtail.run.log import LOG
from longtail.run.progress import Advance, Progress

_PAUSE_S = 0.1
"""Time between two messages of a step."""
_PATIENCE_S = 10.0
"""Time that a process has to end when its input is closed."""


class Ended(NamedTuple):
    """How a job ended: with a result, or with an error in one line."""

    result: Any
    error: str | None


def run_apart(
    command: Sequence[str], job: Any, progress: Progress, say: Callable[[int, str], None], log: Path
) -> Ended:
    """Run a job (plain data) and show its steps here; `say` is called with the level and text of each log message."""
    with open(log, "wb") as written:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=written, text=True)
    outcome: dict[str, Any] = {}
    try:
        _send(process.stdin, job)
        with _Replayed(progress) as steps:
            for line in process.stdout or ():
                message = json.loads(line)
                if "say" in message:
                    say(message["level"], message["say"])
                elif "step" in message:
                    steps.show(message)
                else:
                    outcome = message
    except BrokenPipeError:  # it died before it could read its job
        pass
    finally:
        _end(process)
    if "error" in outcome or "result" in outcome:
        return Ended(outcome.get("result"), outcome.get("error"))
    return Ended(None, _reason(process.returncode, log))


def answer(work: Callable[[Any, Progress], Any]) -> int:
    """Do the job in the other process, and return its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then ends this process
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is printed must not mix with the messages
    reporter = Reporter(out)
    job = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    handler = _Sent(reporter)
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    try:
        reporter.send({"result": work(job, reporter)})
    except LongtailError as error:
        reporter.send({"error": " ".join(str(error).split())})
        return 2
    except MemoryError:
        reporter.send({"error": "the machine's memory is full; use fewer features, or a machine with more"})
        return 2
    finally:
        LOG.removeHandler(handler)
    return 0


class Reporter:
    """Progress that is sent to the parent process."""

    def __init__(self, out: IO[str]) -> None:
        self._out, self._lock, self._n_steps = out, threading.Lock(), 0

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; lines of several threads do not mix."""
        with self._lock:
            _send(self._out, message)

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Return a context for one step, which is shown by the parent."""
        with self._lock:
            self._n_steps += 1
            number = self._n_steps
        self.send({"step": number, "begin": [name, total, unit]})
        waiting, last_note, sent = 0, "", time.monotonic()
        adding = threading.Lock()

        def advance(amount: int, note: str = "") -> None:
            nonlocal waiting, last_note, sent
            with adding:
                waiting, last_note = waiting + amount, note or last_note
                if time.monotonic() - sent < _PAUSE_S:
                    return
                self.send({"step": number, "advance": [waiting, last_note]})
                waiting, sent = 0, time.monotonic()

        try:
            yield advance
        finally:
            self.send({"step": number, "advance": [waiting, last_note], "end": True})


class _Replayed:
    """Shows the steps of another process."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.open = progress, dict[int, tuple[ExitStack, Advance]]()

    def __enter__(self) -> _Replayed:
        return self

    def show(self, message: dict[str, Any]) -> None:
        number = message["step"]
        if "begin" in message:
            stack = ExitStack()
            self.open[number] = stack, stack.enter_context(self.progress.step(*message["begin"]))
        if "advance" in message:
            self.open[number][1](*message["advance"])
        if "end" in message:
            self.open.pop(number)[0].close()

    def __exit__(self, *error: object) -> None:
        for stack, _ in reversed(self.open.values()):
            stack.close()


class _Sent(logging.Handler):
    """Sends log messages to the parent process."""

    def __init__(self, reporter: Reporter) -> None:
        super().__init__()
        self.reporter = reporter

    def emit(self, record: logging.LogRecord) -> None:
        self.reporter.send({"say": record.getMessage(), "level": record.levelno})


def _send(stream: IO[str] | None, message: Any) -> None:
    if stream is not None:
        stream.write(json.dumps(message) + "\n")
        stream.flush()


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(1)


def _end(process: subprocess.Popen[str]) -> None:
    """Close the job's input, which ends its process if it still works."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):
                stream.close()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _reason(code: int, log: Path) -> str:
    """Return why a process ended without a result."""
    if code < 0:
        hint = ": perhaps the machine's memory was full" if code == -signal.SIGKILL else ""
        return f"its process was ended by signal {-code} ({signal.Signals(-code).name}){hint}"
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "it wrote nothing")
    return f"its process ended with code {code}: {last} ({log})"
