"""What training needs beside what is free: for `plan`, which tells it, and `train`, which refuses what will not fit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from longtail.cli.screen import in_bytes

if TYPE_CHECKING:
    from longtail.machine import Needs


class Row(NamedTuple):
    """Something that training needs."""

    what: str
    needed: int
    free: int | None
    """None where nobody knows."""

    @property
    def short(self) -> bool:
        """Whether there is too little of it."""
        return self.free is not None and self.needed > self.free

    def __str__(self) -> str:
        free = "" if self.free is None else f" ({in_bytes(self.free)} free)"
        return f"{in_bytes(self.needed)} of {self.what}{free}"


def rows_of(needs: Needs, out: Path, free_memory: int | None) -> list[Row]:
    """Memory, GPU memory where it is used, and disk."""
    from longtail.machine import free_disk_bytes

    rows = [Row("memory", needs.memory_bytes, free_memory)]
    if needs.gpu_bytes:
        from longtail.nn.devices import free_gpu_bytes

        rows.append(Row("GPU memory", needs.gpu_bytes, free_gpu_bytes()))
    return [*rows, Row("disk", needs.disk_bytes, free_disk_bytes(out))]


def shortage(needs: Needs, rows: list[Row]) -> str | None:
    """What there is too little of, and which options would help; None where all fits."""
    short = [f"about {in_bytes(r.needed)} of {r.what}, {in_bytes(r.free or 0)} are free" for r in rows if r.short]
    if not short:
        return None
    relief = f"make it smaller with --set {needs.relief}" if needs.relief else "use less data"
    return f"training needs {' and '.join(short)}; {relief}"
