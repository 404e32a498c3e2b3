"""Run one case of `faults.py` in a forked child, so that a crash, a hang or a kill is an outcome and not the end.

A case is a function of no arguments. It returns how it went (`same`, `changed`, `silent`, …) or raises: an error of
longtail is `refused`, anything else a `traceback`.
"""

from __future__ import annotations

import json
import math
import os
import re
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LIMIT_S = 10.0
"""Of processor time: what else the machine does is no hang."""
WAIT = 12
"""A case may wait so many times as long as it may compute."""
MEMORY_BYTES = 6 << 30
"""What a case may add to the memory of its parent."""
FILE_EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.scandir", "shutil.rmtree"}


class Outcome(NamedTuple):
    """How a case ended."""

    kind: str
    """same, changed, refused, killed; or a fault: crash, hang, traceback, silent, lost."""
    detail: str = ""


def run_case(case: Callable[[], str], limit_s: float = LIMIT_S) -> Outcome:
    """Carry a case out in a child and wait for its end."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _be_child(case, write, limit_s)
    os.close(write)
    reported, end = b"", time.monotonic() + WAIT * limit_s
    while (left := end - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            more = os.read(read, 1 << 16)
            if not more:
                break
            reported += more
    else:
        os.kill(child, signal.SIGKILL)
    os.close(read)
    status = os.waitpid(child, 0)[1]
    if left <= 0:
        return Outcome("hang", f"waited over {WAIT * limit_s:.0f} s")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return Outcome("hang", f"over {limit_s:.0f} s")
        kind = "killed" if number in (signal.SIGKILL, signal.SIGALRM) else "crash"
        return Outcome(kind, signal.Signals(number).name)
    return Outcome(*json.loads(reported)) if reported else Outcome("crash", f"ended with {status} and said nothing")


def _be_child(case: Callable[[], str], write: int, limit_s: float) -> None:
    from longtail.errors import LongtailError

    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit_s), math.ceil(limit_s) + 1))
    try:
        outcome = Outcome(case())
    except LongtailError as error:
        outcome = Outcome("refused", _plain(error))
    except MemoryError:  # one line on the command line
        outcome = Outcome("refused", "memory")
    except BaseException as error:
        outcome = Outcome("traceback", _where(error))
    with suppress(OSError):
        os.write(write, json.dumps(outcome).encode())
    os._exit(0)


def _where(error: BaseException) -> str:
    """Return an error and the last line of longtail's that it came through."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/longtail/" in frame.filename]
    place = f"{frames[-1].filename.rpartition('/longtail/')[2]}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {place}: {_plain(error)}"


def _plain(error: BaseException) -> str:
    """Return what an error says, without the folder of this run and in one line."""
    return re.sub(r"/\S*/tmp\w+/", "", " ".join(str(error).split()))[:160]


def count_file_events(folder: Path, stop_at: int = 0) -> Callable[[], int]:
    """Count what this process does to files below a folder from now on; die at event `stop_at`. Returns a reader."""
    n_events, below = 0, str(folder)

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal n_events
        if event in FILE_EVENTS and any(below in str(argument) for argument in arguments):
            n_events += 1
            if n_events == stop_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return lambda: n_events
