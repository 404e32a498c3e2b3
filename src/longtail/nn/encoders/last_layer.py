"""The last layer of an encoder, computed for the first token alone.

    states (B, T, d), mask (B, 1, 1, T) or None  ->  (B, 1, d)

Where the first token stands for a text, nothing reads what the last layer makes of the others: they are looked at
(keys and values), but ask nothing (queries) and go through no further layer. The result is the same; of a layer's
products, two in twelve remain. For BERT and what is built like it; the weights keep their names.
"""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

FAMILIES = {"bert", "roberta", "xlm-roberta"}
"""Architectures (`model_type`) whose layers have these parts."""


class _FirstToken:
    """Stands before the class of a layer, and does its work for one token."""

    attention: Any
    intermediate: Any
    output: Any
    training: bool

    def forward(self, states: Tensor, attention_mask: Tensor | None = None, *_: Any, **__: Any) -> Tensor:
        own = self.attention.self
        first = states[:, :1]
        query, key, value = (
            part(given).unflatten(2, (own.num_attention_heads, -1)).transpose(1, 2)
            for part, given in ((own.query, first), (own.key, states), (own.value, states))
        )
        dropped = own.dropout.p if self.training else 0.0
        seen = F.scaled_dot_product_attention(query, key, value, attention_mask, dropped)  # (B, heads, 1, d / heads)
        attended = self.attention.output(seen.transpose(1, 2).flatten(2), first)
        made: Tensor = self.output(self.intermediate(attended), attended)
        return made


def first_token_alone(layer: nn.Module) -> None:
    """Let a layer compute its first token only."""
    kind = type(layer)
    layer.__class__ = type(f"FirstTokenOf{kind.__name__}", (_FirstToken, kind), {})
