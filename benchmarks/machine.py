"""Facts about the machine and the run, without any path of it."""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import time
import uuid
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any


def describe_run(n_threads: int, **limits: float) -> dict[str, Any]:
    """What is the same for all measurements of one run."""
    return {
        "id": uuid.uuid4().hex[:8],
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "n_threads": n_threads,
        **limits,
        "commit": _commit(),
        "machine": {
            "cpu": _cpu_model(),
            "cores": os.cpu_count(),
            "memory_gb": round(memory_bytes() / 1e9, 1),
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "python": platform.python_version(),
        },
        "versions": {name: version(name) for name in ("longtail", "numpy", "scipy", "scikit-learn")},
    }


def arguments_of(about: str, data: str) -> argparse.ArgumentParser:
    """What several programs take: data sets by commas, where they lie, threads, and one job of the program itself."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--data", default=data, help="by commas, where several can be measured")
    parser.add_argument("--shared", type=Path, default=Path(__file__).resolve().parents[2] / "shared")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    return parser


def memory_bytes() -> int:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def memory_of(pid: int) -> int:
    """Bytes that a process holds now; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return 0


class Others:
    """How many cores on average all other processes used, from its making until `cores` is asked."""

    def __init__(self) -> None:
        self._start = time.monotonic(), _busy_s(), _children_s()

    def cores(self) -> float:
        """Our children must have ended by then. Time that a host took from a virtual machine counts too."""
        now = time.monotonic(), _busy_s(), _children_s()
        wall, busy, ours = (b - a for a, b in zip(self._start, now, strict=True))
        return max(0.0, (busy - ours) / wall)


def _busy_s() -> float:
    user, nice, system, _idle, _wait, irq, soft_irq, steal = map(
        int, Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    )
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _commit() -> str:
    """The commit, or the variable LONGTAIL_COMMIT where the checkout has travelled without its history."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        found = ""
    return found.strip() or os.environ.get("LONGTAIL_COMMIT", "unknown")
