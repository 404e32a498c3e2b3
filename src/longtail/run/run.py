"""How long work is carried out: engine, progress, where finished stages are kept, and the precision of networks.

Only the precision changes results, and only a little.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias, get_args

from longtail.errors import ConfigError
from longtail.run.engine import Engine
from longtail.run.local import LocalEngine
from longtail.run.progress import SILENT, Progress
from longtail.run.stages import NO_STAGES, Stages

Precision: TypeAlias = Literal["auto", "fp32", "bf16", "int8"]
"""Numeric precision of trained networks; `auto` is bf16 on a GPU and fp32, as they were trained, on a CPU."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Run:
    """What every function that takes long is handed."""

    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = SILENT
    stages: Stages = NO_STAGES
    precision: Precision = "auto"

    @classmethod
    def of(cls, run: Run | None = None, threads: int | None = None, progress: Progress = SILENT) -> Run:
        """Return `run`, or one made of the shorthands for its parts; raise if both are given."""
        if run is None:
            return cls(LocalEngine(threads), progress)
        if threads is not None or progress is not SILENT:
            raise ConfigError("threads and progress must be left out beside run, which holds both")
        return run

    def within(self, prefix: str) -> Run:
        """Return the same run with stages of its own, whose names begin with `prefix`."""
        return replace(self, stages=self.stages.within(prefix))
