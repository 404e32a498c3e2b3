"""The loss of neighbouring labels: logits of a chunk of a table's rows, their loss and its derivative.

vectors (B, d), rows (n_chunk, d)  ->  logits (B, n_chunk)  ->  derivative (B, n_chunk), loss (B,)
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

Loss: TypeAlias = Literal["bce", "squared_hinge", "softmax"]


class RowChunk(NamedTuple):
    """Neighbouring rows of a table."""

    rows: slice
    weight: Tensor  # (n_chunk, d)
    bias: Tensor | None  # (n_chunk,)
    hits: tuple[Tensor, Tensor] | None
    """Texts with a label in the chunk, and the label's place in it."""
    shares: Tensor | None
    """Weight of each of these; with a softmax, 1 / number of labels of the text. None: all have weight 1."""
    votes: tuple[Tensor, Tensor, Tensor] | None = None
    """Texts, places in the chunk, and what is added to these logits."""


def chunk_logits(vectors: Tensor, chunk: RowChunk, exact: bool = False) -> Tensor:
    """Return logits (B, n_chunk) in the type of the vectors; with `exact` in float32 also on a GPU."""
    if exact and vectors.is_cuda and vectors.dtype != torch.float32:
        logits = torch.mm(vectors, chunk.weight.T, out_dtype=torch.float32)
        logits = logits if chunk.bias is None else logits + chunk.bias
    elif chunk.bias is None:
        logits = vectors @ chunk.weight.T
    else:
        logits = torch.addmm(chunk.bias.to(vectors.dtype), vectors, chunk.weight.T)
    if chunk.votes is not None:
        *places, values = chunk.votes
        logits.index_put_(tuple(places), values.to(logits.dtype), accumulate=True)
    return logits


def chunk_signal(
    loss: Loss, logits: Tensor, chunk: RowChunk, allowed: Tensor | None, sums: Tensor | None = None
) -> Tensor:
    """Return the derivative of the loss by each logit; the logits are overwritten."""
    if sums is not None:
        signal = logits.sub_(sums[:, None]).exp_()
        if chunk.hits is not None and chunk.shares is not None:
            signal[chunk.hits] -= chunk.shares.to(signal.dtype)
    elif loss == "bce":
        missed = None if chunk.hits is None else torch.sigmoid(-logits[chunk.hits])  # in bfloat16 σ(7) − 1 is 0
        signal = logits.sigmoid_()
        if missed is not None:
            signal[chunk.hits] = -missed
            _weigh(signal, chunk)
    else:
        hit = None if chunk.hits is None else logits[chunk.hits]
        signal = logits.add_(1).clamp_(min=0).mul_(2)
        if hit is not None:
            signal[chunk.hits] = -2 * (1 - hit).clamp(min=0)
            _weigh(signal, chunk)
    if allowed is None:
        return signal
    grouped = signal.view(len(signal), allowed.shape[1], -1)
    return torch.where(allowed, grouped, 0).view(signal.shape)


def _weigh(each: Tensor, chunk: RowChunk) -> None:
    """Multiply the entries of texts and their own labels by their weights."""
    if chunk.hits is not None and chunk.shares is not None:
        each[chunk.hits] *= chunk.shares.to(each.dtype)


def chunk_value(loss: Loss, logits: Tensor, chunk: RowChunk, allowed: Tensor | None) -> Tensor:
    """Return the loss summed over the labels of a chunk (B,); of a softmax, without the log-sum-exp."""
    logits = logits.float()
    if loss == "softmax":
        losses = torch.zeros(len(logits), device=logits.device)
        if chunk.hits is not None and chunk.shares is not None:
            losses.index_add_(0, chunk.hits[0], -logits[chunk.hits] * chunk.shares)
        return losses
    each = F.softplus(logits) if loss == "bce" else (1 + logits).clamp(min=0) ** 2
    if chunk.hits is not None:
        hit = logits[chunk.hits]
        each[chunk.hits] = F.softplus(-hit) if loss == "bce" else (1 - hit).clamp(min=0) ** 2
        _weigh(each, chunk)
    if allowed is not None:
        each = torch.where(allowed, each.view(len(each), allowed.shape[1], -1), 0).view(each.shape)
    return each.sum(1)
