"""Whole passes of an encoder as one launch: CUDA graphs, one for each shape of a batch.

A small encoder starts some thousand kernels a step, and starting them takes longer than running them. A graph records
the forward and the backward pass of a shape once and replays them. Batches are always full and have few widths, so
there are few graphs; they share the memory of activations, because one pass is over before the next begins. Random
numbers inside follow the generator's seed at each replay.

Warming up and recording happen on one stream: compiled code is compiled again for every other stream, which must not
happen while recording.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from longtail.nn.encoders.base import Encoder

_WARM_UP = 3


class Graphs:
    """An encoder in training, called like the encoder itself."""

    def __init__(self, encoder: Encoder, dtype: torch.dtype | None) -> None:
        """`dtype` is that of autocast, None where it is off."""
        self.encoder, self.dtype = encoder, dtype
        self.trains = any(parameter.requires_grad for parameter in encoder.parameters())
        self.active = True
        """Off where a step has several micro-batches: gradients live in memory that the next replay overwrites."""
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream()
        self.anchor = torch.zeros((), device="cuda", requires_grad=True)
        self._passes: dict[tuple[int, ...], _Pass] = {}

    def __call__(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """See `Encoder.forward`; parameters get their gradients in the backward pass, as from the encoder."""
        if not (self.trains and self.active and self.encoder.training and torch.is_grad_enabled()):
            return cast(Tensor, self.encoder(ids, mask))
        shape = (*ids.shape, mask is not None)
        if shape not in self._passes:
            self._passes[shape] = _Pass(self, ids, mask)
        made: Tensor = _Replay.apply(self.anchor, self._passes[shape], ids, mask)  # type: ignore[no-untyped-call]
        return made


class _Pass:
    """The two passes of one shape, recorded."""

    def __init__(self, graphs: Graphs, ids: Tensor, mask: Tensor | None) -> None:
        self.ids, self.mask = ids.clone(), None if mask is None else mask.clone()
        self.parameters = [p for p in graphs.encoder.parameters() if p.requires_grad]
        self.forward, self.backward = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        graphs.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(graphs.stream):
            for _ in range(_WARM_UP):
                made = self._run(graphs)
                self._gradients(made, torch.zeros_like(made))
            del made
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
            return cast(Tensor, graphs.encoder(self.ids, self.mask))

    def _gradients(self, vectors: Tensor, upper: Tensor) -> tuple[Tensor | None, ...]:
        return torch.autograd.grad(vectors, self.parameters, upper, allow_unused=True)


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchor: Tensor, recorded: _Pass, ids: Tensor, mask: Tensor | None) -> Tensor:
        ctx.recorded = recorded
        recorded.ids.copy_(ids)
        if mask is not None and recorded.mask is not None:
            recorded.mask.copy_(mask)
        recorded.forward.replay()
        return recorded.vectors.detach()

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[None, None, None, None]:
        recorded: _Pass = ctx.recorded
        recorded.upper.copy_(upper)
        recorded.backward.replay()
        for parameter, gradient in zip(recorded.parameters, recorded.gradients, strict=True):
            parameter.grad = gradient
        return None, None, None, None
