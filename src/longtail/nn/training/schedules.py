"""How learning rates change over the steps of training.

    factor(step, n_steps)  ->  0..1, times each group's rate

The rates of all groups change together, so their ratios stay the same.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from longtail.options import Options


class ScheduleOptions(Options):
    """How rates change."""

    kind: Literal["linear", "cosine", "constant", "triangular", "plateau"] = "linear"
    """After the warm-up: linear or cosine decay to 0; constant; `triangular`: up over `warmup` and down to 1/32
    (slanted triangular); `plateau`: multiply by `plateau_factor` when the validation score stops improving."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of all steps in which rates rise from 0."""
    plateau_factor: float = Field(0.1, gt=0, lt=1)
    """plateau: factor of the rates at a plateau."""
    plateau_patience: int = Field(10, ge=0)
    """plateau: validations without improvement before that happens."""
    plateau_floor: float = Field(0.01, ge=0, le=1)
    """plateau: smallest share of the first rate."""


_SLANT = 32


def factor(options: ScheduleOptions, step: int, n_steps: int, drops: int = 0) -> float:
    """Return the factor of all rates at `step` (from 0) of `n_steps`, after `drops` plateaus."""
    warm = math.ceil(options.warmup * n_steps)
    if step < warm and options.kind != "triangular":
        return (step + 1) / (warm + 1)
    left = max(0.0, (n_steps - step) / max(1, n_steps - warm))
    if options.kind == "linear":
        return left
    if options.kind == "cosine":
        return 0.5 * (1 - math.cos(math.pi * left))
    if options.kind == "triangular":
        part = step / warm if step < warm else left
        return (1 + part * (_SLANT - 1)) / _SLANT
    if options.kind == "plateau":
        return max(options.plateau_floor, options.plateau_factor**drops)
    return 1.0
