"""A layer of BERT and its relatives, for padded texts or for packed texts, which lie one after the other.

    padded   states (B, T, d), mask (B, 1, 1, T) or None  ->  (B, T, d), or (B, 1, d)
    packed   states (N, d), runs                          ->  (N, d), or (B + 1, d)

It replaces the library's layer, with the same weights and names, and is faster for four reasons. Packed texts have
neither padding nor masks, with which attention takes three times as long. If the first token gives the text
vector, the last layer is computed for that token only: the others give keys and values, but no queries and no further
products. Packed states keep their number type, while norms are computed in float32. And dropout of packed texts is
drawn by hashing (`nn/noise`).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.nn.noise import dropped

FAMILIES = {"bert", "roberta", "xlm-roberta"}
"""Architectures (`model_type`) whose layers have this structure."""


class Runs(NamedTuple):
    """Where packed texts lie: text i is `edges[i]` to `edges[i + 1]`; and the seeds of dropout."""

    edges: Tensor  # (B + 2,) int32; the last run is padding, at least one token
    longest: int
    """Upper bound of the length of runs."""
    seeds: Tensor  # (2,) integers of this layer

    @property
    def starts(self) -> Tensor:
        """Return the first token of each run, (B + 1,)."""
        return self.edges[:-1].long()


class _Layer:
    """Mixin that replaces the layer's forward."""

    attention: Any
    intermediate: Any
    output: Any
    training: bool
    alone = False
    """Whether only first tokens are computed (the last layer)."""

    def forward(self, states: Tensor, attention_mask: Tensor | Runs | None = None, *_: Any, **__: Any) -> Tensor:
        if isinstance(attention_mask, Runs):
            return self._packed(states, attention_mask)
        projections = self.attention.self
        asking = states[:, :1] if self.alone else states
        query, key = self._heads(projections.query(asking)), self._heads(projections.key(states))
        value = self._heads(projections.value(states))
        seen = _attend(query, key, value, attention_mask, projections.dropout.p if self.training else 0.0)
        attended = self.attention.output(seen.flatten(-2), asking)
        output: Tensor = self.output(self.intermediate(attended), attended)
        return output

    def _packed(self, states: Tensor, runs: Runs) -> Tensor:
        projections, asking = self.attention.self, states
        if self.alone:
            asking = states[runs.starts]
            query, key, value = projections.query(asking), projections.key(states), projections.value(states)
        else:
            query, key, value = _together(states, projections.query, projections.key, projections.value)
        share = projections.dropout.p if self.training else 0.0
        query, key, value = self._heads(query), self._heads(key), self._heads(value)
        seen = attend_runs(query, key, value, runs, self.alone, share)
        attended = self._added(self.attention.output, seen.flatten(-2), asking, runs.seeds[0])
        return self._added(self.output, self.intermediate(attended), attended, runs.seeds[1])

    def _heads(self, states: Tensor) -> Tensor:
        heads: Tensor = states.unflatten(-1, (self.attention.self.num_attention_heads, -1))
        return heads

    def _added(self, block: Any, states: Tensor, before: Tensor, seed: Tensor) -> Tensor:
        """Return the output of a block for packed states, with the residual `before` added, and normed."""
        states = block.dense(states)
        if self.training:
            states = dropped(states, block.dropout.p, seed)
        norm = block.LayerNorm
        weight, bias = norm.weight.float(), norm.bias.float()
        normed = F.layer_norm(states.float() + before.float(), norm.normalized_shape, weight, bias, norm.eps)
        return normed.to(before.dtype)


def shorten(layers: nn.ModuleList, alone: bool) -> None:
    """Replace the forward of layers by this one; with `alone` the last layer computes first tokens only."""
    for layer in layers:
        kind: Any = type(layer)
        layer.__class__ = _shortened(kind)
    layers[-1].alone = alone  # type: ignore[assignment]


@cache
def _shortened(kind: Any) -> Any:
    """Return one class for all layers, so that they are compiled once."""
    return type(kind.__name__, (_Layer, kind), {})


def _together(states: Tensor, *projections: nn.Linear) -> tuple[Tensor, ...]:
    """Return several projections of the same states, computed as one product."""
    weight = torch.cat([projection.weight for projection in projections])
    bias = torch.cat([projection.bias for projection in projections])
    return F.linear(states, weight, bias).chunk(len(projections), -1)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, share: float) -> Tensor:
    """Return the attention of padded texts, (B, T, heads, width)."""
    query, key, value = (tensor.transpose(1, 2) for tensor in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, mask, share).transpose(1, 2)


def attend_runs(query: Tensor, key: Tensor, value: Tensor, runs: Runs, alone: bool, share: float) -> Tensor:
    """Return the attention of each token to its run, (N, heads, width); with `alone` each run has one query.

    Padding has queries, too: the kernel writes no gradient where there is no query.
    """
    edges = runs.edges
    if not query.is_cuda:
        return _attend_plainly(query, key, value, edges, alone, share)
    asking, most = edges, runs.longest
    if alone:
        asking, most = torch.arange(len(edges), dtype=edges.dtype, device=edges.device), 1
    attended: Tensor = torch.ops.aten._flash_attention_forward(
        query, key, value, asking, edges, most, runs.longest, share, False, False
    )[0]
    return attended


def _attend_plainly(query: Tensor, key: Tensor, value: Tensor, edges: Tensor, alone: bool, share: float) -> Tensor:
    """Return the same attention, computed run by run."""
    by_run = []
    bounds = edges.tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        asking = slice(number, number + 1) if alone else slice(start, stop)
        keys, values = key[start:stop][None], value[start:stop][None]
        by_run.append(_attend(query[asking][None], keys, values, None, share)[0])
    return torch.cat(by_run)
