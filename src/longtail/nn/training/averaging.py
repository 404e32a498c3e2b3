"""Averages of the weights during training, kept on the device.

    ema  avg = decay^every · avg + (1 − decay^every) · weights, every few steps
    swa  the plain mean of snapshots, from a point of training on (docs/methods/lightxml.md#averaging)

Before the first snapshot the average is the weights themselves. Averages are float32; they replace the weights
for validation and at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor

from longtail.options import Options


class AveragingOptions(Options):
    """Averages of weights."""

    kind: Literal["none", "ema", "swa"] = "ema"
    """Exponential moving average (ema), the mean of snapshots (swa), or none."""
    decay: float = Field(0.999, ge=0, lt=1)
    """ema: share of the average that is kept per step; less at the start, to forget the first weights."""
    start: float = Field(0.5, ge=0, lt=1)
    """swa: share of training after which snapshots are taken."""
    every: PositiveInt = 10
    """Steps between two snapshots."""


class Averager:
    """Average of the trained weights."""

    def __init__(self, weights: Mapping[str, Tensor], options: AveragingOptions) -> None:
        self.options, self._weights = options, weights
        self.average: dict[str, Tensor] = {}
        self.n = 0

    @torch.no_grad()
    def after(self, step: int, n_steps: int) -> None:
        """Add the weights after `step` (from 1) of `n_steps` to the average, if a snapshot is due."""
        options = self.options
        begins = options.start * n_steps if options.kind == "swa" else 0
        if options.kind == "none" or step < begins or step % options.every:
            return
        self.n += 1
        if options.kind == "swa":
            share = 1 / self.n
        else:
            kept = min(options.decay**options.every, self.n / (self.n + 9.0))
            share = 1.0 if self.n == 1 else 1 - kept
        if self.n == 1:
            self.average = {name: torch.empty_like(value, dtype=torch.float32) for name, value in self._weights.items()}
            for name, value in self._weights.items():
                self.average[name].copy_(value)
            return
        mine = list(self.average.values())
        now = [self._weights[name].detach() for name in self.average]
        same = [value if value.dtype == torch.float32 else value.float() for value in now]
        torch._foreach_lerp_(mine, same, share)

    @contextmanager
    def swapped_in(self) -> Iterator[None]:
        """Use the average in place of the weights inside the `with` block."""
        if not self.n:
            yield
            return
        kept = {name: value.detach().clone() for name, value in self._weights.items()}
        self.put_in()
        try:
            yield
        finally:
            _copy(kept, self._weights)

    def put_in(self) -> None:
        """Replace the weights by their average."""
        _copy(self.average, self._weights)


def _copy(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    with torch.no_grad():
        for name, value in source.items():
            target[name].copy_(value)
