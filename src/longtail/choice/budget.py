"""How long training may take: as an option, and as a clock that runs.

clock = Clock(600.0)     clock.spent_s, clock.left_s
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from longtail.units import seconds_of

NO_LIMIT = "none"


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return None if value == NO_LIMIT else seconds_of(value)


Budget: TypeAlias = Annotated[Annotated[float, Field(ge=60)] | None, BeforeValidator(_seconds)]
"""Seconds, 60 at least, which may be written as 90s, 10m or 1h30m; None, or `none`, for no limit."""


@dataclass(frozen=True)
class Clock:
    """The time of a training, from the moment on when the clock is made."""

    budget_s: float | None
    """What it may take in all; None for no limit."""
    _started: float = field(default_factory=time.monotonic)

    @property
    def spent_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._started

    @property
    def left_s(self) -> float | None:
        """Seconds that are left; None where there is no limit."""
        return self.left_before(0.0)

    def left_before(self, kept_back_s: float) -> float | None:
        """Return the seconds that are left before the last `kept_back_s`; None where there is no limit."""
        return None if self.budget_s is None else self.budget_s - kept_back_s - self.spent_s
