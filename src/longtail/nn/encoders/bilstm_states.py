"""A BiLSTM over words that returns a state per word, for heads that attend to words (`labelwise`).

    ids (B, T)  ->  word vectors  ->  H (B, T, width = 2 hidden); zeros at padding

For the backward LSTM each text is reversed within its own length, so padding changes nothing. Packed sequences give
the same, but need the lengths on the host.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.nn.encoders.base import ENCODERS, lengths_of
from longtail.nn.encoders.recurrent import states_of
from longtail.nn.encoders.words import WordEncoder, WordEncoderOptions
from longtail.text.tokens import TokenOptions


class RecurrentOptions(WordEncoderOptions):
    """Options that BiLSTMs share."""

    hidden: PositiveInt = 512
    """Units of the LSTM in each direction."""
    n_layers: PositiveInt = 1
    """Stacked LSTMs."""
    dropout_words: float = Field(0.0, ge=0, lt=1)
    """Share of the numbers of word vectors that is dropped in training."""


class StatesOptions(RecurrentOptions):
    """BiLSTM whose states go to the head."""

    kind: Literal["bilstm-states"] = "bilstm-states"
    """Which encoder this is."""
    tokens: TokenOptions = TokenOptions(max_tokens=500)
    """How texts become tokens."""
    hidden: PositiveInt = 256
    """Units of the LSTM in each direction; a state has twice as many numbers."""
    dropout_words: float = Field(0.2, ge=0, lt=1)
    """Share of the numbers of word vectors that is dropped in training."""
    dropout: float = Field(0.4, ge=0, lt=1)
    """Share of the numbers of states that is dropped in training, after each LSTM."""


class Recurrent(WordEncoder):
    """Base of BiLSTMs; their options must have `dropout`."""

    dropout: nn.Dropout

    def _build(self) -> None:
        options = self.options
        self.width = 2 * options.hidden
        widths = [self.word_width, *[self.width] * (options.n_layers - 1)]
        self.forwards = nn.ModuleList(nn.LSTM(width, options.hidden, batch_first=True) for width in widths)
        self.backwards = nn.ModuleList(nn.LSTM(width, options.hidden, batch_first=True) for width in widths)
        self.dropout_words, self.dropout = nn.Dropout(options.dropout_words), nn.Dropout(options.dropout)

    def states(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return H, the state of each word (B, T, 2 hidden); zeros at padding."""
        turned = _turned(ids, mask)
        states: Tensor = self.dropout_words(self.vectors_of(ids, mask))
        for number, (forwards, backwards) in enumerate(zip(self.forwards, self.backwards, strict=True)):
            before = states if number == 0 else self.dropout(states)
            ahead, back = states_of(forwards, before), states_of(backwards, _taken(before, turned))
            states = torch.cat([ahead, _taken(back, turned)], 2)
        return states if mask is None else states * mask[..., None]


@ENCODERS.register("bilstm-states")
class States(Recurrent):
    """BiLSTM that returns its states."""

    options_class: ClassVar[type[WordEncoderOptions]] = StatesOptions
    returns_states = True

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        """Return the states of all words."""
        states: Tensor = self.dropout(self.states(ids, mask))
        return states


def _turned(ids: Tensor, mask: Tensor | None) -> Tensor:
    """Return places (B, T) that reverse each text within its own length and keep padding in place."""
    places = torch.arange(ids.shape[1], device=ids.device)
    mirrored = lengths_of(ids, mask)[:, None] - 1 - places
    return torch.where(mirrored >= 0, mirrored, places)


def _taken(states: Tensor, places: Tensor) -> Tensor:
    return states.gather(1, places[..., None].expand(-1, -1, states.shape[2]))
