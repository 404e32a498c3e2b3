"""Every label scored through a narrow layer that all labels share.

vectors (B, d)  ->  linear (B, rank)  ->  logits (B, n_labels)
"""

from __future__ import annotations

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from pydantic import PositiveInt
from torch import Tensor, nn

from longtail.labels.frequency import log_odds
from longtail.nn.batch import Targets
from longtail.nn.heads.base import Head, HeadInputs, LabelSpace
from longtail.options import Options
from longtail.types import LabelMatrix


class LowRankOptions(Options):
    """Shape of the head."""

    rank: PositiveInt = 16
    """Width of the shared layer."""


class LowRank(Head):
    """A weight matrix of low rank over all labels."""

    options_class: ClassVar[type[Options]] = LowRankOptions

    def __init__(self, width: int, n_labels: int, options: LowRankOptions) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.narrow = nn.Linear(width, options.rank, bias=False)
        self.labels = nn.Linear(options.rank, n_labels)

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: LowRankOptions | None = None) -> LowRank:
        """Return a new head for text vectors of `width` numbers."""
        return cls(width, labels.n_labels, options or LowRankOptions())

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start the bias of each label from its log odds in training."""
        with torch.no_grad():
            self.labels.bias.copy_(torch.from_numpy(log_odds(places.texts_per_label(), places.n_texts)))

    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of all labels, (B, n_labels) float32."""
        with torch.autocast(vectors.device.type, enabled=False):
            logits: Tensor = self.labels(self.narrow(vectors.float()))
        return logits

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the mean over texts of the summed binary cross-entropy."""
        logits = self.logits(inputs.vectors)
        cost = F.binary_cross_entropy_with_logits(logits, targets.dense(self.n_labels), reduction="sum")
        return cost * (share / len(logits))

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return scores and labels, best first; equal ones by label."""
        logits, labels = self.logits(inputs.vectors).sort(dim=1, descending=True, stable=True)
        return logits[:, :k].sigmoid(), labels[:, :k]

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        return {"n_labels": self.n_labels, "rank": self.narrow.out_features}
