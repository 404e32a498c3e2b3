"""Filters over a few neighbouring words, pooled over parts of the text (XML-CNN).

    ids (B, T)  ->  word vectors  ->  for each height: windows (B, n_filters, W)  ->  maxima of parts of the text
                ->  ReLU, flat (B, n_heights * n_filters * slots)  ->  ReLU layer: width = bottleneck

Each text is divided by its own windows, not by those of the padded batch, so that padding changes nothing. A text of n
words has ceil((n - height) / stride) + 1 windows, at least one; only the last may reach beyond the text, where it sees
zeros, so that every word is seen.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.nn import functional

from longtail.nn.encoders.base import ENCODERS, lengths_of
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions


class CNNOptions(WordEncoderOptions):
    """Filters over words; heights 1, 3, 5, stride 2 and 4 slots make the one that X-BERT's authors tried."""

    kind: Literal["cnn"] = "cnn"
    """Which encoder this is."""
    heights: tuple[PositiveInt, ...] = Field((2, 4, 8), min_length=1)
    """Widths of filters in words."""
    n_filters: PositiveInt = 128
    """Filters of each height."""
    stride: PositiveInt = 1
    """Step from one window to the next, in words."""
    slots: PositiveInt = 8
    """Equal parts of a text; the maximum of each filter over each part is kept."""
    bottleneck: PositiveInt | None = 512
    """Units of the ReLU layer that gives the text vector; None leaves it out."""
    dropout_words: float = Field(0.25, ge=0, lt=1)
    """Share of the numbers of word vectors that is dropped in training."""
    dropout: float = Field(0.5, ge=0, lt=1)
    """Share of the pooled numbers that is dropped in training."""


@ENCODERS.register("cnn")
class CNN(WordEncoder):
    """Filters over words, dynamic max pooling, and a bottleneck."""

    options_class: ClassVar[type[WordEncoderOptions]] = CNNOptions

    def _build(self) -> None:
        options = self.options
        self.filters = nn.ModuleList(
            nn.Conv1d(self.word_width, options.n_filters, height, options.stride) for height in options.heights
        )
        self.dropout_words, self.dropout = nn.Dropout(options.dropout_words), nn.Dropout(options.dropout)
        self.width = len(options.heights) * options.n_filters * options.slots
        self.bottleneck: nn.Linear | None = None
        if options.bottleneck is not None:
            self.bottleneck, self.width = nn.Linear(self.width, options.bottleneck), options.bottleneck

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text."""
        words = self.dropout_words(self.vectors_of(ids, mask)).transpose(1, 2)  # (B, word_width, T)
        lengths = lengths_of(ids, mask)
        pooled = []
        for height, filters in zip(self.options.heights, self.filters, strict=True):
            stride = self.options.stride
            widest = max(-(-(ids.shape[1] - height) // stride), 0)
            wanted = widest * stride + height
            windows = filters(functional.pad(words, (0, wanted - ids.shape[1])))
            n_windows = ((lengths - height + stride - 1) // stride).clamp(min=0) + 1
            pooled.append(slot_maxima(windows, n_windows, self.options.slots))
        vectors: Tensor = self.dropout(torch.cat(pooled, 1).relu().flatten(1))
        return vectors if self.bottleneck is None else self.bottleneck(vectors).relu()


def slot_maxima(values: Tensor, lengths: Tensor, slots: int) -> Tensor:
    """Return maxima (B, F, slots) of `values` (B, F, W) over equal parts of the first `lengths` (B,) places of rows.

    This is adaptive max pooling of each row alone: part j goes from floor(j n / slots) to ceil((j + 1) n / slots).
    """
    n_rows, n_filters, width = values.shape
    part = torch.arange(slots, device=values.device)
    first = part * lengths[:, None] // slots  # (B, slots)
    last = ((part + 1) * lengths[:, None] + slots - 1) // slots - 1
    longest = min(-(-width // slots) + 1, width)
    # Shorter parts repeat their last place, which changes no maximum.
    places = torch.minimum(first[..., None] + torch.arange(longest, device=values.device), last[..., None])
    taken = values.gather(2, places.flatten(1)[:, None].expand(-1, n_filters, -1))
    return taken.view(n_rows, n_filters, slots, longest).max(3).values
