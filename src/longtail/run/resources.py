"""Memory and disk: what training needs, what this machine has free, and what was used."""

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
class ResourceEstimate:
    """What training will take, estimated beforehand."""

    memory_bytes: int
    disk_bytes: int
    how_to_shrink: str
    """Which options make it smaller."""
    gpu_bytes: int = 0
    """Memory of the GPU; 0 if none is used."""
    seconds: float | None = None
    """How long it takes on this machine; None if that was not measured."""
    parts: tuple[tuple[str, int], ...] = ()
    """What takes the memory (that of the GPU if one is used), in bytes."""

    def then(self, later: ResourceEstimate) -> ResourceEstimate:
        """Return what both take, one after the other: each has the memory for itself, the disk keeps both."""
        timed = [needs.seconds for needs in (self, later) if needs.seconds is not None]
        largest = max(self, later, key=lambda needs: (needs.gpu_bytes, needs.memory_bytes))
        return ResourceEstimate(
            memory_bytes=max(self.memory_bytes, later.memory_bytes),
            disk_bytes=self.disk_bytes + later.disk_bytes,
            how_to_shrink=largest.how_to_shrink,
            gpu_bytes=largest.gpu_bytes,
            seconds=sum(timed) if timed else None,
            parts=largest.parts,
        )


def free_memory_bytes() -> int | None:
    """Return the memory that a new process may use, within the limits of a container; None if it is unknown."""
    limits = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(int(line.split()[1]) * 1024)
    except OSError:
        return None
    for limit, used in _CGROUPS:
        try:
            limits.append(int(Path(limit).read_text()) - int(Path(used).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits, default=None)


def free_disk_bytes(path: str | Path) -> int:
    """Return the free space where `path` is or will be."""
    place = Path(path).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def peak_memory_bytes() -> int | None:
    """Return the most memory that this process ever took; None if it is unknown."""
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
