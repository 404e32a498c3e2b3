"""A BiLSTM over words, read by several attention heads (X-ttention).

    ids (B, T)  ->  word vectors  ->  H (B, T, 2 hidden)  ->  A = softmax_T(W2 tanh(W1 H)) (B, n_heads, T)
                ->  A H (B, n_heads, 2 hidden), flat: width = n_heads * 2 hidden

Padding is masked: each text is turned round within its own length for the backward LSTM, and attention sees real words
only. That is what packed sequences give, but lengths need not come to the host. `code` does as the authors' program
did: LSTM and attention run over the padding, and a ReLU layer of 2,000 units follows.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import torch
from pydantic import Field, PositiveInt, model_validator
from torch import Tensor, nn

from longtail.nn.encoders.base import lengths_of
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions

_CODE_DENSE = 2000


class BiLSTMOptions(WordEncoderOptions):
    """BiLSTM with attention heads."""

    kind: Literal["bilstm"] = "bilstm"
    """Which encoder this is."""
    hidden: PositiveInt = 512
    """Units of the LSTM in each direction."""
    n_layers: PositiveInt = 1
    """LSTMs one above the other."""
    n_heads: PositiveInt = 30
    """Attention heads; each gives 2 × hidden numbers of a text's vector."""
    attention_width: PositiveInt = 350
    """Units of the layer that attention weights are computed by."""
    dense: PositiveInt | None = None
    """Units of a ReLU layer above, which then is the text's vector; by default there is none."""
    dropout_words: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers of word vectors that is dropped in training."""
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


class BiLSTM(WordEncoder):
    """BiLSTM with attention heads."""

    options_class: ClassVar[type[WordEncoderOptions]] = BiLSTMOptions

    def _build(self) -> None:
        options = self.options
        both = 2 * options.hidden
        widths = [self.word_width, *[both] * (options.n_layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(width, options.hidden, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(nn.LSTM(width, options.hidden, batch_first=True) for width in widths)
        self.inner = nn.Linear(both, options.attention_width)
        self.heads = nn.Linear(options.attention_width, options.n_heads)
        self.dropout_words, self.dropout = nn.Dropout(options.dropout_words), nn.Dropout(options.dropout)
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

    def states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """H: what the LSTM makes of each word, (B, T, 2 hidden); zeros at padding."""
        turned = _turned(ids, mask)
        states: Tensor = self.dropout_words(self.vectors_of(ids, mask))
        for number, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            before = states if number == 0 else self.dropout(states)
            ahead, back = forwards(before)[0], backwards(_taken(before, turned))[0]
            states = torch.cat([ahead, _taken(back, turned)], 2)
        return states if mask is None else states * mask[..., None]

    def attention(self, states: Tensor, mask: Tensor | None) -> Tensor:
        """A: how much each head looks at each word, (B, n_heads, T); each row sums to 1."""
        scores: Tensor = self.heads(self.inner(states).tanh()).transpose(1, 2).float()
        if mask is not None:
            # Not minus infinity: a text without words must give numbers.
            scores = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min)
        return scores.softmax(2).to(states.dtype)


def _turned(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Places (B, T) that turn each text round within its own length and leave padding where it is."""
    places = torch.arange(ids.shape[1], device=ids.device)
    mirrored = lengths_of(ids, mask)[:, None] - 1 - places
    return torch.where(mirrored >= 0, mirrored, places)


def _taken(states: Tensor, places: Tensor) -> Tensor:
    return states.gather(1, places[..., None].expand(-1, -1, states.shape[2]))
