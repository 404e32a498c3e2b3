"""What every head is: text vectors in, a loss in training, the best labels in use.

    loss(vectors (B, d), targets)  ->  scalar: the mean over texts, with gradients to the vectors and the parameters
    top_k(vectors, k)              ->  scores (B, k) in 0..1, labels (B, k) int64, best first

A head numbers its labels by place: `order[place]` is the label. Training labels are renumbered once before
training, so `targets` hold places; `top_k` gives places too. Scores are computed in float32 and ordered by the
logits (or log scores) behind them, so that saturation makes no ties.

Parameters are trained by the trainer's optimiser, except those that a head trains itself (`step`): a label table that
is large wants a cheap optimiser, and a gradient that is never held as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.nn.batch import Targets
from longtail.types import LabelMatrix

if TYPE_CHECKING:
    from longtail.nn.heads.table import LabelTable
    from longtail.nn.rows import RowTable


@dataclass(frozen=True)
class Step:
    """What parts that train themselves are told when the step of a batch is done."""

    rates: dict[str, float]
    """Learning rate of each parameter group by name."""
    decay: float = 0.0
    """Of the labels' weights."""
    encoder_decay: float = 0.0
    """Of the encoder's."""
    scale: float = 1.0
    """What gradients that came through autograd were multiplied with (float16)."""


class Head(nn.Module):
    """Labels above a text vector."""

    n_labels: int
    order: NDArray[np.int64] | None = None
    """(n_places,) label at each place, −1 where a place is padding; None where places are the labels."""

    @abstractmethod
    def loss(self, vectors: Tensor, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Loss of a batch times `share`; its value need be right only with `show`, its gradients always.

        `share` is the part of the whole batch that these texts are, where a batch is cut into micro-batches.
        """

    @abstractmethod
    def top_k(self, vectors: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """Scores and places of the k best labels; k is at most `n_labels`.

        A head that looks only at a shortlist may find fewer: the rest of a row has place −1 and score −inf.
        """

    def begin(self, places: LabelMatrix) -> None:
        """Look at the labels of the training texts, as places, before the first step."""

    def step(self, step: Step) -> None:
        """Update what this head trains itself, with all that `loss` was given since the last step."""

    def forget(self) -> None:
        """Drop what `loss` was given since the last step: the step will be tried again."""

    def tables(self) -> Mapping[str, LabelTable | RowTable]:
        """What trains itself, by attribute: its optimiser's memory belongs into a checkpoint."""
        return {}

    @property
    def bulk(self) -> dict[str, nn.Parameter]:
        """The parameters of the tables, named as in `named_parameters`: nearly all of the memory of a large head."""
        return {
            f"{name}.{key}": value for name, table in self.tables().items() for key, value in table.named_parameters()
        }

    def held_bytes(self, n_texts: int, n_tokens: int) -> int:
        """What a step holds of so many texts of so many tokens, the encoder's part left out: here logits, their
        gradient, and what a loss is shown by."""
        widths = [table.n_at_once for table in self.tables().values()]
        return 3 * 4 * n_texts * (max(widths) if widths else self.n_labels)

    def group_of(self, name: str) -> str:
        """The parameter group (learning rate) that a parameter of this head belongs to."""
        return "head"

    def facts(self) -> dict[str, Any]:
        """What describes this head, as plain data (sizes, ratios): shown by `longtail info`."""
        return {}


def working_dtype(vectors: Tensor) -> torch.dtype:
    """The number type of large products: that of autocast where it is on, else that of the vectors."""
    kind = vectors.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else vectors.dtype


def positions(order: NDArray[np.int64], n_labels: int) -> NDArray[np.int64]:
    """The place of each label, (n_labels,), by the label of each place; −1 for a label without one."""
    made = np.full(n_labels, -1, np.int64)
    real = np.flatnonzero(order >= 0)
    made[order[real]] = real
    return made
