"""A BiLSTM over words, read by several attention heads (X-ttention).

    ids (B, T)  ->  word vectors  ->  H (B, T, 2 hidden)  ->  A = softmax_T(W2 tanh(W1 H)) (B, n_heads, T)
                ->  A H (B, n_heads, 2 hidden), flat: width = n_heads * 2 hidden

Padding is masked: the LSTMs stop at the end of a text (`bilstm_states`), and attention sees real words only. With
`padding="read"` LSTM and attention run over the padding, as in the authors' program.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.nn.encoders.base import ENCODERS
from longtail.nn.encoders.bilstm_states import Recurrent, RecurrentOptions
from longtail.nn.encoders.words import WordEncoderOptions
from longtail.options import Ablation


class BiLSTMOptions(RecurrentOptions):
    """BiLSTM with attention heads."""

    kind: Literal["bilstm"] = "bilstm"
    """Which encoder this is."""
    n_heads: PositiveInt = 30
    """Attention heads; each adds 2 × hidden numbers to a text vector."""
    attention_width: PositiveInt = 350
    """Units of the layer that computes attention weights."""
    dense: PositiveInt | None = None
    """Units of a ReLU layer on top that gives the text vector; by default there is none."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout between LSTMs and after the heads."""
    padding: Ablation[Literal["masked", "read"]] = "masked"
    """Whether padding is left out, or read like words; then a text's vector depends on the batch it is in."""


@ENCODERS.register("bilstm")
class BiLSTM(Recurrent):
    """BiLSTM with attention heads."""

    options_class: ClassVar[type[WordEncoderOptions]] = BiLSTMOptions

    def _build(self) -> None:
        super()._build()
        options, both = self.options, self.width
        self.inner = nn.Linear(both, options.attention_width)
        self.heads = nn.Linear(options.attention_width, options.n_heads)
        self.width = options.n_heads * both
        self.dense: nn.Linear | None = None
        if options.dense is not None:
            self.dense, self.width = nn.Linear(self.width, options.dense), options.dense

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return one vector per text."""
        if self.options.padding == "read":
            mask = None
        states = self.states(ids, mask)
        attended = self.attention(states, mask) @ states  # (B, n_heads, 2 hidden)
        vectors: Tensor = self.dropout(attended.flatten(1))
        return vectors if self.dense is None else self.dense(vectors).relu()

    def attention(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """Return A, the attention of each head to each word (B, n_heads, T); each row sums to 1."""
        scores: Tensor = self.heads(self.inner(states).tanh()).transpose(1, 2).float()
        if mask is not None:
            # Not minus infinity: a text without words must give finite numbers.
            scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)
        return scores.softmax(2).to(states.dtype)
