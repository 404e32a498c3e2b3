"""A layer of BERT and what is built like it, for texts side by side (padded) or one after the other (packed).

    padded   states (B, T, d), mask (B, 1, 1, T) or None  ->  (B, T, d), or (B, 1, d)
    packed   states (N, d), runs                          ->  (N, d), or (B + 1, d)

It stands in for the library's own layer, with the same weights under the same names, and does four things for speed.
Packed texts have neither padding nor masks, with which attention takes three times as long. Where the first token
stands for a text, the last layer is computed for it alone: the others are looked at (keys and values) but ask nothing,
and go through no further products. Packed states are kept in the numbers they came in, while norms are computed in
float32. And dropout of packed texts is drawn by hashing (`nn/noise`).
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
"""Architectures (`model_type`) whose layers have these parts."""


class Runs(NamedTuple):
    """Where texts lie in a row of tokens: text i is `edges[i]` to `edges[i + 1]`; and what dropout is drawn by."""

    edges: Tensor  # (B + 2,) int32; the last run is no text: it fills up what is left, at least one token
    longest: int
    """No run is longer."""
    seeds: Tensor  # (2,) whole numbers, of this layer alone

    @property
    def starts(self) -> Tensor:
        """The first token of each run, (B + 1,)."""
        return self.edges[:-1].long()


class _Layer:
    """Stands before the class of a layer, and does its work."""

    attention: Any
    intermediate: Any
    output: Any
    training: bool
    alone = False
    """Whether only first tokens are computed."""

    def forward(self, states: Tensor, attention_mask: Tensor | Runs | None = None, *_: Any, **__: Any) -> Tensor:
        if isinstance(attention_mask, Runs):
            return self._packed(states, attention_mask)
        own = self.attention.self
        asking = states[:, :1] if self.alone else states
        query, key, value = (self._heads(part) for part in (own.query(asking), own.key(states), own.value(states)))
        seen = _attend(query, key, value, attention_mask, own.dropout.p if self.training else 0.0)
        attended = self.attention.output(seen.flatten(-2), asking)
        made: Tensor = self.output(self.intermediate(attended), attended)
        return made

    def _packed(self, states: Tensor, runs: Runs) -> Tensor:
        own, asking = self.attention.self, states
        if self.alone:
            asking = states[runs.starts]
            query, key, value = own.query(asking), own.key(states), own.value(states)
        else:
            query, key, value = _together(states, own.query, own.key, own.value)
        share = own.dropout.p if self.training else 0.0
        query, key, value = self._heads(query), self._heads(key), self._heads(value)
        seen = attend_runs(query, key, value, runs, self.alone, share)
        attended = self._added(self.attention.output, seen.flatten(-2), asking, runs.seeds[0])
        return self._added(self.output, self.intermediate(attended), attended, runs.seeds[1])

    def _heads(self, states: Tensor) -> Tensor:
        made: Tensor = states.unflatten(-1, (self.attention.self.num_attention_heads, -1))
        return made

    def _added(self, part: Any, made: Tensor, before: Tensor, seed: Tensor) -> Tensor:
        """What a part makes of packed states, added to those before, and normed."""
        made = part.dense(made)
        if self.training:
            made = dropped(made, part.dropout.p, seed)
        norm = part.LayerNorm
        shape, weights = norm.normalized_shape, (norm.weight.float(), norm.bias.float())
        return F.layer_norm(made.float() + before.float(), shape, *weights, norm.eps).to(before.dtype)


def shorten(layers: nn.ModuleList, alone: bool) -> None:
    """Let layers do their work as here; with `alone` the last one computes first tokens only."""
    for layer in layers:
        kind: Any = type(layer)
        layer.__class__ = _shortened(kind)
    layers[-1].alone = alone  # type: ignore[assignment]


@cache
def _shortened(kind: Any) -> Any:
    """One class for all layers: they are then compiled once."""
    return type(kind.__name__, (_Layer, kind), {})


def _together(states: Tensor, *parts: nn.Linear) -> tuple[Tensor, ...]:
    """Several projections of the same states as one product."""
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    return F.linear(states, weight, bias).chunk(len(parts), -1)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, share: float) -> Tensor:
    """Of padded texts: (B, T, heads, width) -> the same."""
    query, key, value = (part.transpose(1, 2) for part in (query, key, value))
    return F.scaled_dot_product_attention(query, key, value, mask, share).transpose(1, 2)


def attend_runs(query: Tensor, key: Tensor, value: Tensor, runs: Runs, alone: bool, share: float) -> Tensor:
    """Each token to all tokens of its run: (N, heads, width) -> the same; with `alone` each run has one query.

    What fills up has queries, too: the kernel writes no gradient where nothing was asked.
    """
    edges = runs.edges
    if not query.is_cuda:
        return _attend_plainly(query, key, value, edges, alone, share)
    asking, most = edges, runs.longest
    if alone:
        asking, most = torch.arange(len(edges), dtype=edges.dtype, device=edges.device), 1
    shape = asking, edges, most, runs.longest
    made: Tensor = torch.ops.aten._flash_attention_forward(query, key, value, *shape, share, False, False)[0]
    return made


def _attend_plainly(query: Tensor, key: Tensor, value: Tensor, edges: Tensor, alone: bool, share: float) -> Tensor:
    """The same, run by run."""
    found = []
    bounds = edges.tolist()
    for number, (start, stop) in enumerate(pairwise(bounds)):
        asking = slice(number, number + 1) if alone else slice(start, stop)
        own = query[asking][None], key[start:stop][None], value[start:stop][None]
        found.append(_attend(*own, None, share)[0])
    return torch.cat(found)
