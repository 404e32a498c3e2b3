"""Whole passes of an encoder as one launch: CUDA graphs, one for each shape of a batch.

A small encoder starts some thousand kernels a step, and starting them takes longer than running them. A graph records
the forward and the backward pass of a shape once and replays them. Batches are always full and have few widths, so
there are few graphs; they share their memory, because one pass is over before the next begins. Random numbers inside
follow the generator's seed at each replay.

A shape that cannot be recorded runs as it is.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from longtail.nn.devices import LOG
from longtail.nn.encoders.base import Encoder


class Graphs:
    """An encoder in training, called like the encoder itself."""

    def __init__(self, encoder: Encoder, dtype: torch.dtype | None) -> None:
        """`dtype` is that of autocast, None where it is off."""
        self.encoder, self.dtype = encoder, dtype
        self.active = True
        """Off where a step has several micro-batches: gradients live in memory that the next replay overwrites."""
        self._passes: dict[tuple[int, ...], _Pass | None] = {}
        self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """See `Encoder.forward`."""
        found = self._pass(ids, mask) if self.active and self.encoder.training and torch.is_grad_enabled() else None
        if found is None:
            return cast(Tensor, self.encoder(ids, mask))
        return cast(Tensor, found(ids) if mask is None else found(ids, mask))

    def _pass(self, ids: Tensor, mask: Tensor | None) -> _Pass | None:
        shape = (*ids.shape, mask is not None)
        if shape not in self._passes:
            self._passes[shape] = self._recorded(ids, mask)
        return self._passes[shape]

    def _recorded(self, ids: Tensor, mask: Tensor | None) -> _Pass | None:
        given = (ids.clone(),) if mask is None else (ids.clone(), mask.clone())
        on = self.dtype is not None
        try:
            with torch.autocast("cuda", self.dtype or torch.bfloat16, enabled=on, cache_enabled=False):
                made = _Pass(self.encoder)
                return cast(_Pass, torch.cuda.make_graphed_callables(made, given, 3, True, self._pool))
        except torch.cuda.OutOfMemoryError:
            raise
        except RuntimeError as error:
            LOG.info("batches of %s are not recorded as CUDA graphs: %s", tuple(ids.shape), error)
            return None


class _Pass(nn.Module):
    """What is recorded: a graph must not know arguments that are no tensors."""

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, ids: Tensor, mask: Tensor | None = None) -> Tensor:
        return cast(Tensor, self.encoder(ids, mask))
