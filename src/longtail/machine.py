"""What a job needs of a machine, what this one has left, and what was taken: memory and disk."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

_CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


@dataclass(frozen=True)
class Needs:
    """What training will take, as far as it can be told before."""

    memory_bytes: int
    disk_bytes: int
    relief: str
    """Which options make it smaller."""
    gpu_bytes: int = 0
    """Memory of the GPU; 0 where none is used."""
    seconds: float | None = None
    """How long it takes on this machine; None where that was not measured."""
    parts: tuple[tuple[str, int], ...] = ()
    """What takes the memory (that of the GPU where one is used), in bytes."""

    def then(self, later: Needs) -> Needs:
        """What it takes to do this, then something else: each has the memory for itself, the disk keeps both."""
        timed = [needs.seconds for needs in (self, later) if needs.seconds is not None]
        largest = max(self, later, key=lambda needs: (needs.gpu_bytes, needs.memory_bytes))
        return Needs(
            memory_bytes=max(self.memory_bytes, later.memory_bytes),
            disk_bytes=self.disk_bytes + later.disk_bytes,
            relief=largest.relief,
            gpu_bytes=largest.gpu_bytes,
            seconds=sum(timed) if timed else None,
            parts=largest.parts,
        )


def free_memory_bytes() -> int | None:
    """Memory that a new process may use, the limits of a container counted in; None where it cannot be told."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                found.append(int(line.split()[1]) * 1024)
    except OSError:
        return None
    for limit, used in _CGROUPS:
        try:
            found.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return min(found, default=None)


def free_disk_bytes(path: str | Path) -> int:
    """Free space where `path` is or will be."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def peak_memory_bytes() -> int | None:
    """The most memory that this process ever took; None where it cannot be told."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux, where alone the peak of the program that started this one is not counted in
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
