"""Jobs in processes of their own."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from longtail.run.isolated import Ended, run_apart
from longtail.run.progress import SILENT, Advance

pytestmark = pytest.mark.slow

TOP = """
import os, sys, time
from longtail.run.isolated import answer
from longtail.errors import DataError
from longtail.run.log import LOG

def work(job, progress):
"""
END = "\nraise SystemExit(answer(work))"
PATIENCE_S = 30


class Seen:
    """Remembers all that is shown."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        self.events.append((name, total, unit))
        yield lambda amount, note="": self.events.append((name, amount, note)) if amount else None
        self.events.append((name, "end"))

    def amounts(self, name: str) -> int:
        return sum(event[1] for event in self.events if event[0] == name and len(event) == 3 and event[2] != "texts")


def run(body: str, folder: Path, job: Any = None, seen: Any = SILENT, notes: list[Any] | None = None) -> Ended:
    code = TOP + "\n".join(f"    {line}" for line in body.strip().splitlines()) + END
    heard = [] if notes is None else notes
    command = [sys.executable, "-c", code]
    return run_apart(command, job, seen, lambda level, text: heard.append((level, text)), folder / "log.txt")


def test_a_job_goes_there_and_its_result_comes_back(tmp_path: Path) -> None:
    ended = run("return {'sum': sum(job), 'own': os.getpid()}", tmp_path, job=[1, 2, 3])
    assert ended.error is None
    assert ended.result["sum"] == 6
    assert ended.result["own"] != os.getpid()


def test_steps_are_shown_here_as_they_happen_there(tmp_path: Path) -> None:
    seen = Seen()
    body = """
with progress.step("outer", 2):
    with progress.step("inner", 1000, "texts") as advance:
        for number in range(1000):
            advance(1, f"loss {number}")
"""
    assert run(body, tmp_path, seen=seen).error is None
    assert seen.events[:2] == [("outer", 2, ""), ("inner", 1000, "texts")]
    assert seen.amounts("inner") == 1000
    assert seen.events[-3][2] == "loss 999"
    assert seen.events[-2:] == [("inner", "end"), ("outer", "end")]
    assert len(seen.events) < 100  # a message for each of a thousand steps would cost more than they do


def test_notes_arrive_and_prints_go_to_the_log(tmp_path: Path) -> None:
    notes: list[Any] = []
    body = "print('printed', flush=True); LOG.info('said'); LOG.warning('warned'); return 1"
    assert run(body, tmp_path, notes=notes).result == 1
    assert notes == [(logging.INFO, "said"), (logging.WARNING, "warned")]
    assert (tmp_path / "log.txt").read_text() == "printed\n"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("raise DataError('two\\nlines')", "two lines"),
        ("raise MemoryError", "memory is full"),
        ("raise KeyError('bug')", "its process ended with code 1: KeyError: 'bug'"),
        ("os._exit(3)", "its process ended with code 3: it wrote nothing"),
        ("os.kill(os.getpid(), 9)", "ended by signal 9 (SIGKILL): perhaps the machine's memory was full"),
    ],
)
def test_a_job_that_fails_leaves_one_line(tmp_path: Path, body: str, error: str) -> None:
    ended = run(body, tmp_path)
    assert ended.result is None
    assert error in str(ended.error)
    assert "\n" not in str(ended.error)


def test_a_program_that_cannot_start_is_told(tmp_path: Path) -> None:
    ended = run_apart([sys.executable, "-c", "raise SystemExit(4)"], 1, SILENT, lambda *_: None, tmp_path / "log")
    assert "code 4" in str(ended.error)


@pytest.mark.skipif(os.name != "posix", reason="signals are of POSIX")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_when_the_one_that_watches_ends_the_job_ends(tmp_path: Path, end: int) -> None:
    inner = TOP + f"    open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); time.sleep(60)" + END
    outer = (
        "import sys\nfrom pathlib import Path\nfrom longtail.run.isolated import run_apart\n"
        "from longtail.run.progress import SILENT\n"
        f"run_apart([sys.executable, '-c', {inner!r}], 1, SILENT, print, Path({str(tmp_path / 'log')!r}))"
    )
    watching = subprocess.Popen([sys.executable, "-c", outer], stderr=subprocess.PIPE)
    pid = int(waited(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
    watching.send_signal(end)
    watching.communicate(timeout=PATIENCE_S)
    assert waited(lambda: not alive(pid))


def waited(condition: Any) -> Any:
    stop = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < stop
        time.sleep(0.01)
    return found


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")
