"""Every label scored, with TReaderXML's printed loss: a softmax over the labels, and a sigmoid over that.

Specified in docs/methods/treaderxml.md#loss.

    vectors (B, d)  ->  logits (B, n_labels)  ->  p = softmax  ->  Σ −log σ(p) of its labels, −log(1 − σ(p)) of others

A p lies in 0..1, so σ(p) in 0.5..0.73: each wrong label costs at least ln 2, whatever the network says, and a right
one gains 0.38 at most. It is here for comparison; `dense` with BCE is what should be used.
"""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.nn.batch import Targets
from longtail.nn.heads.base import HEADS, Head, HeadInputs, LabelSpace


@HEADS.register("softmax-sigmoid")
class SoftmaxSigmoid(Head):
    """One row of weights per label, trained by the trainer's optimiser; for up to some ten thousand labels."""

    has_logits = True
    recordable = True

    def __init__(self, width: int, n_labels: int) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.rows = nn.Linear(width, n_labels)

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: Any | None = None) -> SoftmaxSigmoid:
        """Return a new head for text vectors of `width` numbers."""
        return cls(width, labels.n_labels)

    def logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of all labels, (B, n_labels) float32."""
        with torch.autocast(vectors.device.type, enabled=False):
            return cast(Tensor, self.rows(vectors.float()))

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the mean over texts of the sum over labels."""
        p = self.logits(inputs.vectors).softmax(1)
        # −log(1 − σ(p)) is softplus(p), and −log σ(p) is that less p.
        return (F.softplus(p).sum() - p[targets.rows, targets.labels].sum()) * (share / len(inputs.vectors))

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return p of the k best labels, ordered by their logits."""
        logits = self.logits(inputs.vectors)
        places = logits.sort(dim=1, descending=True, stable=True).indices[:, :k]
        return logits.softmax(1).gather(1, places), places

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return p of the k best labels."""
        logits = self.logits(inputs.vectors)
        places = logits.topk(k).indices
        return logits.softmax(1).gather(1, places), places

    def logit_of(self, vectors: Tensor, place: int) -> Tensor:
        """Return the logit of a label for each text, (B,)."""
        return self.logits(vectors)[:, place]

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        return {"n_labels": self.n_labels, "n_weights": self.rows.weight.numel()}
