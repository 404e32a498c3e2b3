"""Launch whole passes of an encoder at once: CUDA graphs, one per shape of a batch.

A small encoder launches about a thousand kernels per step, which takes longer than running them. A graph records the
forward and the backward pass of a shape once and replays them. Batches are always full and have few widths, so there
are few graphs; they share the memory of activations, because one pass ends before the next begins. Random numbers
inside follow the generator's seed at each replay.

Warm-up and recording use the same stream: code is compiled again for every other stream, which must not happen while
recording.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from longtail.nn.encoders.base import Encoder

_WARM_UP = 3


class Graphs:
    """Calls an encoder in training through recorded graphs."""

    def __init__(self, encoder: Encoder, dtype: torch.dtype | None) -> None:
        """`dtype` is that of autocast, None if it is off."""
        self.encoder, self.dtype = encoder, dtype
        self.trains = any(parameter.requires_grad for parameter in encoder.parameters())
        self.active = True
        """Off if a step has several micro-batches: gradients are in memory that the next replay overwrites."""
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()
        self.anchor = torch.zeros((), device="cuda", requires_grad=True)
        self._passes: dict[tuple[tuple[int, ...], ...], _Pass] = {}

    def __call__(self, *inputs: Tensor | None) -> Tensor:
        """Return the encoder's output; the backward pass sets the gradients of its parameters."""
        if not (self.trains and self.active and self.encoder.training and torch.is_grad_enabled()):
            return cast(Tensor, self.encoder(*inputs))
        shapes = tuple(() if tensor is None else tuple(tensor.shape) for tensor in inputs)
        if shapes not in self._passes:
            self._passes[shapes] = _Pass(self, inputs)
        output: Tensor = _Replay.apply(self.anchor, self._passes[shapes], *inputs)  # type: ignore[no-untyped-call]
        return output


class _Pass:
    """The recorded forward and backward pass for one shape of all inputs."""

    def __init__(self, graphs: Graphs, inputs: tuple[Tensor | None, ...]) -> None:
        self.inputs = tuple(None if tensor is None else tensor.clone() for tensor in inputs)
        self.parameters = [p for p in graphs.encoder.parameters() if p.requires_grad]
        self.forward, self.backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        graphs.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(graphs.stream):
            for _ in range(_WARM_UP):
                output = self._run(graphs)
                self._gradients(output, torch.zeros_like(output))
            del output
        torch.cuda.synchronize()
        with torch.cuda.graph(self.forward, pool=graphs.pool, stream=graphs.stream):
            vectors = self._run(graphs)
        self.upper = torch.zeros_like(vectors)
        with torch.cuda.graph(self.backward, pool=graphs.pool, stream=graphs.stream):
            self.gradients = self._gradients(vectors, self.upper)
        self.vectors = vectors.detach()

    def _run(self, graphs: Graphs) -> Tensor:
        on = graphs.dtype is not None
        with torch.autocast("cuda", graphs.dtype or torch.bfloat16, enabled=on, cache_enabled=False):
            return cast(Tensor, graphs.encoder(*self.inputs))

    def _gradients(self, vectors: Tensor, upper: Tensor) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(vectors, self.parameters, upper, allow_unused=True)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, recorded: _Pass, *inputs: Tensor | None) -> Tensor:
        ctx.recorded = recorded
        for buffer, tensor in zip(recorded.inputs, inputs, strict=True):
            if buffer is not None and tensor is not None:
                buffer.copy_(tensor)
        recorded.forward.replay()
        return recorded.vectors.detach()

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[None, ...]:
        recorded: _Pass = ctx.recorded
        recorded.upper.copy_(upper)
        recorded.backward.replay()
        for parameter, gradient in zip(recorded.parameters, recorded.gradients, strict=True):
            parameter.grad = gradient
        return (None,) * (2 + len(recorded.inputs))
