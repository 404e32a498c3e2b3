"""A text as the mean of the vectors of its words, and of its pairs of words (fastText).

    ids (B, T)  ->  mean over real words [and pairs] (B, word_width)

Pairs of neighbouring words share `n_buckets` vectors by hash; that keeps some of the order of words.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn
from torch.nn import functional

from longtail.nn.encoders.base import lengths_of
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions

_PRIME = 116_049_371
"""Times an id below 2^24 it fits into 64 bits with room to spare."""


class BagOptions(WordEncoderOptions):
    """Mean of word vectors."""

    kind: Literal["bag"] = "bag"
    """Which encoder this is."""
    n_buckets: NonNegativeInt = 0
    """Vectors for pairs of neighbouring words, shared by hash; 0 leaves pairs out."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers of a text's vector that is dropped in training."""


class Bag(WordEncoder):
    """Mean of word vectors."""

    options_class: ClassVar[type[WordEncoderOptions]] = BagOptions

    def _build(self) -> None:
        self.width = self.word_width
        self.dropout = nn.Dropout(self.options.dropout)
        self.pairs: nn.Embedding | None = None
        if self.options.n_buckets:
            self.pairs = nn.Embedding(self.options.n_buckets, self.word_width)
            # Small, so that a pair that was never trained hardly blurs the mean.
            nn.init.uniform_(self.pairs.weight, -1 / self.word_width, 1 / self.word_width)

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """One vector a text."""
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        total = _sum(self.embedding.weight, ids, real)
        count = lengths_of(ids, mask)
        if self.pairs is not None and ids.shape[1] > 1:
            buckets = (ids[:, :-1] * _PRIME + ids[:, 1:]) % self.options.n_buckets
            total = total + _sum(self.pairs.weight, buckets, real[:, 1:])
            count = count + (count - 1).clamp(min=0)
        vectors: Tensor = self.dropout(total / count.clamp(min=1)[:, None])
        return vectors


def _sum(table: Tensor, ids: Tensor, real: Tensor) -> Tensor:
    """Sum of the rows of the real ids (B, width), without ever making (B, T, width)."""
    return functional.embedding_bag(ids, table, mode="sum", per_sample_weights=real.to(table.dtype))
