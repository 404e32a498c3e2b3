"""How a job is carried out: threads, progress, where finished stages are kept, and in which numbers texts are read.

Only the last of these changes the result, and that a little.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from longtail.engines.local import LocalEngine
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages

Precision: TypeAlias = Literal["auto", "fp32", "bf16", "int8"]
"""Numbers that trained networks read texts with; `auto` is bf16 on a GPU and fp32, as they were trained, on a CPU."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Run:
    """What parts that take long are handed."""

    engine: LocalEngine = field(default_factory=LocalEngine)
    progress: Progress = SILENT
    stages: Stages = NO_STAGES
    precision: Precision = "auto"

    def within(self, prefix: str) -> Run:
        """The same, with stages of their own."""
        return replace(self, stages=self.stages.within(prefix))
