"""Optimiser steps for rows of a label table: SGD with momentum, and Adam, in place and in two number types.

    weight (n, d), moments, gradient (n, d), numbers of the step  ->  weight and moments, changed in place

The numbers that change from step to step are tensors, so that a compiled update is never compiled again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from longtail.nn.batch import on_device
from longtail.nn.noise import random_bits

_BETAS = 0.9, 0.999
_LOW_BITS = 1 << 16


def step_numbers(
    rate: float, decay: float, epsilon: float, n_updates: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return rate, weight decay, Adam's corrections, a random seed and epsilon (6,): for weights, and for a bias."""
    correction = [1 - beta**n_updates for beta in _BETAS]
    seed = float(torch.randint(1 << 24, ()))  # a whole number that float32 holds
    values = torch.tensor([[rate, shrink, *correction, seed, epsilon] for shrink in (decay, 0.0)])
    for_weight, for_bias = on_device(values, device)
    return for_weight, for_bias


def row_update(optimizer: str, compiled: bool) -> Callable[..., None]:
    """Return the update of `sgd` or `adam`, compiled or plain."""
    if not compiled:
        return _PLAIN[optimizer]
    if optimizer not in _COMPILED:
        _COMPILED[optimizer] = torch.compile(_PLAIN[optimizer], dynamic=True)
    update: Callable[..., None] = _COMPILED[optimizer]
    return update


def _sgd(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    direction = gradient.float() * scale
    if moments:
        direction = moments[0].float() * momentum + direction
        _store(moments[0], direction, step[4], 0)
    value = weight.float() * (1 - step[0] * step[1]) - step[0] * direction
    _store(weight, value, step[4], 16)


def _adam(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    gradient = gradient.float() * scale
    first = moments[0] * _BETAS[0] + gradient * (1 - _BETAS[0])
    second = moments[1] * _BETAS[1] + gradient * gradient * (1 - _BETAS[1])
    moments[0].copy_(first)
    moments[1].copy_(second)
    change = (first / step[2]) / ((second / step[3]).sqrt() + step[5])
    _store(weight, weight.float() * (1 - step[0] * step[1]) - step[0] * change, step[4], 0)


def _store(place: Tensor, value: Tensor, seed: Tensor, shift: int) -> None:
    """Write float32 numbers. bfloat16 is rounded up or down at random (16 bits of noise), which keeps the mean."""
    if place.dtype == torch.float32:
        place.copy_(value)
        return
    noise = (random_bits(place, seed) >> shift) & (_LOW_BITS - 1)
    bits = (value.contiguous().view(torch.int32) + noise) & -_LOW_BITS
    place.copy_(bits.view(torch.float32))


_PLAIN: dict[str, Callable[..., None]] = {"sgd": _sgd, "adam": _adam}
_COMPILED: dict[str, Any] = {}
