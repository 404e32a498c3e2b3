"""Memory of this process, from /proc.

Not getrusage: its ru_maxrss starts at the memory of the parent process.
"""

from __future__ import annotations

from pathlib import Path


def resident_mb() -> float:
    """What the process holds now."""
    return _status("VmRSS")


def peak_mb() -> float:
    """The most that it held since its start, or since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> None:
    """The peak starts anew: reading data may have needed more than what is to be measured."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) * 1024 / 1e6
