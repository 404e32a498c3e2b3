"""A BiLSTM over words, read by several attention heads (X-ttention).

    ids (B, T)  ->  word vectors  ->  H (B, T, 2 hidden)  ->  A = softmax_T(W2 tanh(W1 H)) (B, n_heads, T)
                ->  A H (B, n_heads, 2 hidden), flat: width = n_heads * 2 hidden

Padding is masked: the LSTMs stop at the end of a text (`states`), and attention sees real words only. `code` does as
the authors' program did: LSTM and attention run over the padding, and a ReLU layer of 2,000 units follows.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from longtail.nn.encoders.states import Recurrent, RecurrentOptions
from longtail.nn.encoders.words import WordEncoderOptions

_CODE_DENSE = 2000


class BiLSTMOptions(RecurrentOptions):
    """BiLSTM with attention heads."""

    kind: Literal["bilstm"] = "bilstm"
    """Which encoder this is."""
    n_heads: PositiveInt = 30
    """Attention heads; each gives 2 × hidden numbers of a text's vector."""
    attention_width: PositiveInt = 350
    """Units of the layer that attention weights are computed by."""
    dense: PositiveInt | None = None
    """Units of a ReLU layer above, which then is the text's vector; by default there is none."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers that is dropped in training between LSTMs and of what the heads give."""
    variant: Literal["paper", "code", "fixed"] = "fixed"
    """`paper`: the heads' output is the vector. `code`: padding is not masked, and `dense` is 2,000. `fixed`: padding
    is masked, `dense` as you like."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.variant != "fixed" and self.dense is not None:
            raise ValueError(f"dense can be set only with variant 'fixed', got {self.dense} with '{self.variant}'")
        return self


class BiLSTM(Recurrent):
    """BiLSTM with attention heads."""

    options_class: ClassVar[type[WordEncoderOptions]] = BiLSTMOptions

    def _build(self) -> None:
        super()._build()
        options, both = self.options, self.width
        self.inner = nn.Linear(both, options.attention_width)
        self.heads = nn.Linear(options.attention_width, options.n_heads)
        self.width = options.n_heads * both
        dense = _CODE_DENSE if options.variant == "code" else options.dense
        self.dense: nn.Linear | None = None
        if dense is not None:
            self.dense, self.width = nn.Linear(self.width, dense), dense

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """One vector a text."""
        if self.options.variant == "code":
            mask = None
        states = self.states(ids, mask)
        found = self.attention(states, mask) @ states  # (B, n_heads, 2 hidden)
        vectors: Tensor = self.dropout(found.flatten(1))
        return vectors if self.dense is None else self.dense(vectors).relu()

    def attention(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """A: how much each head looks at each word, (B, n_heads, T); each row sums to 1."""
        scores: Tensor = self.heads(self.inner(states).tanh()).transpose(1, 2).float()
        if mask is not None:
            # Not minus infinity: a text without words must give numbers.
            scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)
        return scores.softmax(2).to(states.dtype)
