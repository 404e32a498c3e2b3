"""A text as the largest number of each column over the vectors of its words.

ids (B, T)  ->  word vectors (B, T, word_width)  ->  maxima (B, word_width)
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field
from torch import Tensor, nn

from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions


class PeakOptions(WordEncoderOptions):
    """Maxima of word vectors."""

    kind: Literal["peak"] = "peak"
    """Which encoder this is."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers of a text's vector that is dropped in training."""


class Peak(WordEncoder):
    """Maxima of word vectors."""

    options_class: ClassVar[type[WordEncoderOptions]] = PeakOptions

    def _build(self) -> None:
        self.width = self.word_width
        self.dropout = nn.Dropout(self.options.dropout)

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text; zeros for a text without words."""
        vectors = self.vectors_of(ids, mask)
        if mask is not None:
            vectors = vectors.masked_fill(~mask[..., None], -1e4)
        peaks = vectors.amax(1)
        if mask is not None:
            peaks = peaks * mask.any(1, keepdim=True)
        dropped: Tensor = self.dropout(peaks)
        return dropped
