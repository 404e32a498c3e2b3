"""Like fastText: the sum of a text's word vectors, and one row of weights per label.

Fast on a CPU: a step touches only the words of its texts. fastText itself divides by the number of words and takes one
step per text; here sums are divided by the root of that number, and a step has many texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pydantic import Field

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.bag import BagOptions
from longtail.nn.training.averaging import AveragingOptions
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.schedules import ScheduleOptions
from longtail.text.vectors import WordVectorOptions

if TYPE_CHECKING:
    from longtail.methods.keywords import FastTextKeywords


class FastTextOptions(DenseOptions):
    """Options of fastText."""

    encoder: BagOptions = BagOptions(divisor="root", vectors=WordVectorOptions(width=100, spread=0.01))
    """Words, and pairs of words, whose vectors are summed."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector."""
    training: TrainingOptions = TrainingOptions(
        epochs=15.0,
        batch_size=128,
        rate=0.03,
        head_rate=0.01,
        decay=0.0,
        schedule=ScheduleOptions(warmup=0.0),
        averaging=AveragingOptions(kind="none"),
    )
    """How the network is trained."""


@METHODS.register("fasttext")
class FastText(DenseMethod):
    """Summed word vectors with every label on top; fast on a CPU."""

    options_class = FastTextOptions

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[FastTextKeywords]) -> None: ...
