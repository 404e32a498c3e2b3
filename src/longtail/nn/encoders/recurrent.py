"""One LSTM over a batch, with the fastest kernel of a GPU and without losing gradients.

    inputs (B, T, d)  ->  states (B, T, hidden)

In mixed precision torch computes an LSTM on a GPU in float16, even if bfloat16 was asked for. Gradients of a loss that
is a mean over texts underflow in float16. So they are multiplied by a power of two on their way in, such that the
largest is about an eighth (sums over all words must stay below 65,504), and divided by it on their way out, to inputs
and weights.

cuDNN keeps the weights of an LSTM on the chip for all steps if numbers are float16, `hidden` and d are multiples of
128, and the batch is a multiple of 8 and at most 128 texts. Inputs and their weights are therefore zero-padded.
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
"""Gradients below this count as zero."""


def states_of(lstm: nn.Module, inputs: Tensor) -> Tensor:
    """Return the states of an LSTM of one layer, batch first, in the number type of large products."""
    kind, device = inputs.dtype, inputs.device.type
    mixed = torch.is_autocast_enabled(device)
    kind = torch.get_autocast_dtype(device) if mixed else kind
    if inputs.is_cuda:
        return scaled_states(lstm, inputs).to(kind) if mixed else cast(Tensor, lstm(inputs)[0])
    with torch.autocast(device, enabled=False):  # in float32: only some CPUs have an LSTM in bfloat16
        return _run(lstm, inputs.float(), [weight.float() for weight in _weights(lstm)]).to(kind)


def scaled_states(lstm: nn.Module, inputs: Tensor) -> Tensor:
    """Return the states in float32, with padded inputs and gradients that are scaled inside the LSTM."""
    scale = _Scale()
    more = -inputs.shape[2] % _ALIGNED
    tensors = (inputs, *_weights(lstm))
    entering, first, *others = [cast(Tensor, _Out.apply(tensor, scale)) for tensor in tensors]  # type: ignore[no-untyped-call]
    states = _run(lstm, F.pad(entering, (0, more)), [F.pad(first, (0, more)), *others])
    return cast(Tensor, _In.apply(states.float(), scale))  # type: ignore[no-untyped-call]


def _run(lstm: nn.Module, inputs: Tensor, weights: list[Tensor]) -> Tensor:
    start = inputs.new_zeros(1, inputs.shape[0], weights[1].shape[1])
    return torch.lstm(inputs, (start, start), weights, True, 1, 0.0, lstm.training, False, True)[0]


def _weights(lstm: nn.Module) -> list[Tensor]:
    return [getattr(lstm, name) for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")]


class _Scale:
    """Factor of the gradients of one call; set when they arrive."""

    value: Tensor


class _Unchanged(torch.autograd.Function):
    """Returns its input; only gradients change."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, scale: _Scale) -> Tensor:
        ctx.scale = scale
        return tensor.view_as(tensor)


class _In(_Unchanged):
    """Scales gradients that enter the LSTM by a power of two, which changes only their exponents."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        largest = gradient.abs().amax().clamp(min=_SMALLEST)
        ctx.scale.value = torch.exp2(torch.log2(_LARGEST / largest).floor())
        return gradient * ctx.scale.value, None


class _Out(_Unchanged):
    """Divides gradients that leave the LSTM by that power of two."""

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient / ctx.scale.value, None
