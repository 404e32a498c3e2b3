"""Like fastText: the sum of a text's word vectors, and one row of weights per label.

Fast on a CPU: a step touches only the words of its texts. fastText itself divides by the number of words and takes one
step per text; here sums are divided by the root of that number, and a step has many texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from pydantic import Field

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.bag import FOR_ROWS, SUM_OF_WORDS, BagOptions
from longtail.nn.training.options import TrainingOptions

if TYPE_CHECKING:
    from longtail.methods.keywords import FastTextKeywords


class FastTextOptions(DenseOptions):
    """Options of fastText."""

    encoder: BagOptions = SUM_OF_WORDS
    """Words, and pairs of words, whose vectors are summed."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector."""
    training: TrainingOptions = FOR_ROWS
    """How the network is trained."""


@METHODS.register("fasttext")
class FastText(DenseMethod):
    """Summed word vectors with every label on top; fast on a CPU."""

    options_class = FastTextOptions

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[FastTextKeywords]) -> None: ...
