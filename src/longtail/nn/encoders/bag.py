"""A text as the mean of the vectors of its words, and of its pairs of words (fastText).

    ids (B, T)  ->  sum over real words [and pairs], divided by their number or its root  (B, word_width)

Pairs of neighbouring words share `n_buckets` vectors by hash; that keeps some of the order of words. A batch touches
few of all these vectors, and only those are updated (`rows`).
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, NonNegativeInt
from torch import Tensor, nn

from longtail.nn.encoders.base import ENCODERS, lengths_of
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions
from longtail.nn.rows import RowTable, bag_sums
from longtail.nn.training.averaging import AveragingOptions
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.schedules import ScheduleOptions
from longtail.text.vectors import WordVectorOptions

_PRIME = 116_049_371
"""Its product with an id below 2^24 fits in 64 bits."""


class BagOptions(WordEncoderOptions):
    """Mean of word vectors."""

    kind: Literal["bag"] = "bag"
    """Which encoder this is."""
    n_buckets: NonNegativeInt = 0
    """Vectors for pairs of neighbouring words, shared by hash; 0 leaves pairs out."""
    divisor: Literal["count", "root"] = "count"
    """Divide the sum of a text's vectors by their number, or by its root, which gives longer texts longer vectors."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers of a text's vector that is dropped in training."""


SUM_OF_WORDS = BagOptions(divisor="root", vectors=WordVectorOptions(width=100, spread=0.01))
"""The bag of methods for CPUs."""
FOR_ROWS = TrainingOptions(
    epochs=15.0,
    batch_size=128,
    rate=0.03,
    head_rate=0.01,
    decay=0.0,
    schedule=ScheduleOptions(warmup=0.0),
    averaging=AveragingOptions(kind="none"),
)
"""How it is trained: Adagrad on rows wants high rates, and neither warm-up nor averages."""


@ENCODERS.register("bag")
class Bag(WordEncoder):
    """Mean of word vectors."""

    options_class: ClassVar[type[WordEncoderOptions]] = BagOptions

    def _build(self) -> None:
        self.width = self.word_width
        self.dropout = nn.Dropout(self.options.dropout)
        if self.options.vectors.trainable:
            self.embedding = RowTable(self.tokeniser.n_ids, self.word_width)
        self.pairs: RowTable | None = None
        if self.options.n_buckets:
            # Small, so that an untrained pair hardly changes the mean.
            self.pairs = RowTable(self.options.n_buckets, self.word_width, 1 / self.word_width)

    def embeddings(self) -> None:
        """Return nothing: words are summed where they lie, and never vectors of their own."""

    def tables(self) -> dict[str, RowTable]:
        """Return the tables that train themselves, by name."""
        tables = {"words": self.embedding, "pairs": self.pairs}
        return {name: table for name, table in tables.items() if isinstance(table, RowTable)}

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text."""
        real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
        total, count = _sums(self.embedding, ids, real), lengths_of(ids, mask)
        if self.pairs is not None and ids.shape[1] > 1:
            buckets = (ids[:, :-1] * _PRIME + ids[:, 1:]) % self.options.n_buckets
            total = total + _sums(self.pairs, buckets, real[:, 1:])
            count = count + (count - 1).clamp(min=0)
        divisor = count.clamp(min=1).to(total.dtype)
        vectors: Tensor = self.dropout(total / (divisor.sqrt() if self.options.divisor == "root" else divisor)[:, None])
        return vectors


def _sums(table: nn.Embedding, ids: Tensor, real: Tensor) -> Tensor:
    return table.sums(ids, real) if isinstance(table, RowTable) else bag_sums(table.weight, ids, real)
