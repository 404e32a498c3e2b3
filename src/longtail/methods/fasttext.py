"""Like fastText: the vectors of a text's words added up, and one row of weights a label.

Quick on a CPU: a step touches the words of its texts and no others. fastText itself divides by the number of words and
takes one step a text; here it is the root of that number, and a step has many texts.
"""

from __future__ import annotations

from pydantic import Field

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.averaging import AveragingOptions
from longtail.nn.encoders.bag import BagOptions
from longtail.nn.schedules import ScheduleOptions
from longtail.nn.training import TrainingOptions
from longtail.text.vectors import WordVectorOptions


class FastTextOptions(DenseOptions):
    """Options of the method like fastText."""

    encoder: BagOptions = BagOptions(divisor="root", vectors=WordVectorOptions(width=100, spread=0.01))
    """Words, and pairs of words, whose vectors are added up."""
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
    """Word vectors added up, with every label on top; quick on a CPU."""

    name = "fasttext"
    options_class = FastTextOptions
