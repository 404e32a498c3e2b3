"""How a job is carried out: threads, progress, and where finished stages are kept. None of it changes the result."""

from __future__ import annotations

from dataclasses import dataclass, field

from longtail.engines.local import LocalEngine
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages


@dataclass(frozen=True)
class Run:
    """What parts that take long are handed."""

    engine: LocalEngine = field(default_factory=LocalEngine)
    progress: Progress = SILENT
    stages: Stages = NO_STAGES

    def within(self, prefix: str) -> Run:
        """The same, with stages of their own."""
        return Run(self.engine, self.progress, self.stages.within(prefix))
