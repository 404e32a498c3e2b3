"""Encoders by kind: what an options file may ask for."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from longtail.nn.encoders.bag import Bag, BagOptions
from longtail.nn.encoders.base import Encoder
from longtail.nn.encoders.bilstm import BiLSTM, BiLSTMOptions
from longtail.nn.encoders.cnn import CNN, CNNOptions
from longtail.nn.encoders.reader import Reader, ReaderOptions
from longtail.nn.encoders.states import States
from longtail.nn.encoders.transformer import Transformer, TransformerOptions

AnyEncoderOptions: TypeAlias = Annotated[
    TransformerOptions | BiLSTMOptions | CNNOptions | BagOptions | ReaderOptions, Field(discriminator="kind")
]
ENCODERS: dict[str, type[Encoder]] = {
    "transformer": Transformer,
    "bilstm": BiLSTM,
    "bilstm-states": States,
    "cnn": CNN,
    "bag": Bag,
    "reader": Reader,
}
