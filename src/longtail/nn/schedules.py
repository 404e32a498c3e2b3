"""How learning rates change over the steps of training.

    factor(step, n_steps)  ->  0..1, times each group's rate

Rates of all groups change together, so their ratios stay.
"""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from longtail.options import Options


class ScheduleOptions(Options):
    """How rates change."""

    kind: Literal["linear", "cosine", "constant", "triangular", "plateau"] = "linear"
    """After the warm-up: down to 0 in a line or a cosine; constant; `triangular`: up over `warmup` and down to 1/32
    (slanted triangular); `plateau`: by `plateau_factor` whenever the validation score has not risen."""
    warmup: float = Field(0.1, ge=0, lt=1)
    """Share of all steps in which rates rise from 0."""
    plateau_factor: float = Field(0.1, gt=0, lt=1)
    """plateau: what rates are multiplied with."""
    plateau_patience: int = Field(10, ge=0)
    """plateau: validations without a gain before that happens."""
    plateau_floor: float = Field(0.01, ge=0, le=1)
    """plateau: never below this share of the first rate."""


_SLANT = 32


def factor(options: ScheduleOptions, step: int, n_steps: int, drops: int = 0) -> float:
    """What rates are multiplied with at `step` (from 0) of `n_steps`; `drops`: plateaus met so far."""
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
