"""One LSTM over a batch, as fast as a GPU has it and without losing its gradients.

    inputs (B, T, d)  ->  states (B, T, hidden)

In mixed precision torch computes an LSTM on a GPU in float16, also where bfloat16 was asked for. A loss that is a mean
over texts sends gradients below float16's smallest numbers back into it. So they are multiplied by a power of two on
their way in, such that the largest is about an eighth (sums over all words must stay below 65,504), and divided by it
on their way out: to inputs and weights.

cuDNN keeps the weights of an LSTM on the chip for all steps where numbers are float16, `hidden` and d are multiples of
128, and a batch is a multiple of 8, at most 128 texts. Inputs and their weights are therefore filled up with zeros.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_ALIGNED = 128
_LARGEST = 0.125
_SMALLEST = 1e-30
"""Gradients below this count as none."""


def states_of(lstm: nn.Module, inputs: Tensor) -> Tensor:
    """What an LSTM of one layer, batch first, makes of each word; in the number type of large products."""
    kind, device = inputs.dtype, inputs.device.type
    mixed = torch.is_autocast_enabled(device)
    kind = torch.get_autocast_dtype(device) if mixed else kind
    if inputs.is_cuda:
        return scaled_states(lstm, inputs).to(kind) if mixed else cast(Tensor, lstm(inputs)[0])
    with torch.autocast(device, enabled=False):  # in float32: only some CPUs have an LSTM in bfloat16
        return _run(lstm, inputs.float(), [weight.float() for weight in _weights(lstm)]).to(kind)


def scaled_states(lstm: nn.Module, inputs: Tensor) -> Tensor:
    """The same in float32, with inputs filled up and gradients that are scaled inside."""
    scale = _Scale()
    more = -inputs.shape[2] % _ALIGNED
    given, first, *others = [cast(Tensor, _Out.apply(part, scale)) for part in (inputs, *_weights(lstm))]  # type: ignore[no-untyped-call]
    made = _run(lstm, F.pad(given, (0, more)), [F.pad(first, (0, more)), *others])
    return cast(Tensor, _In.apply(made.float(), scale))  # type: ignore[no-untyped-call]


def _run(lstm: nn.Module, inputs: Tensor, weights: list[Tensor]) -> Tensor:
    start = inputs.new_zeros(1, len(inputs), weights[1].shape[1])
    return torch.lstm(inputs, (start, start), weights, True, 1, 0.0, lstm.training, False, True)[0]


def _weights(lstm: nn.Module) -> list[Tensor]:
    return [getattr(lstm, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]


class _Scale:
    """What the gradients of one call are multiplied by; known when they arrive."""

    value: Tensor


class _In(torch.autograd.Function):
    """Gradients into the LSTM: scaled up, by what keeps the numbers as they are but for their exponent."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, scale: _Scale) -> Tensor:
        ctx.scale = scale
        return states.view_as(states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        largest = gradient.abs().amax().clamp(min=_SMALLEST)
        ctx.scale.value = torch.exp2(torch.log2(_LARGEST / largest).floor())
        return gradient * ctx.scale.value, None


class _Out(torch.autograd.Function):
    """Gradients out of the LSTM: as they would have been."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, scale: _Scale) -> Tensor:
        ctx.scale = scale
        return given.view_as(given)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient / ctx.scale.value, None
