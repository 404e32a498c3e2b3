"""Every label scored within the clusters that an earlier level recalled: one level of XR-Transformer's training.

    vectors (B, d), clusters (B, n), their log scores (B, n)  ->  scores of the labels below these clusters

    log score(label) = log score of its own margin + log score of its cluster

In training a text counts for the labels of its recalled clusters and of the clusters of its own labels: whole clusters,
so that a positive is never left out. All other labels have no loss and no gradient. Where inputs have no clusters, all
labels take part: so it is at the first level.

Logits of all labels are computed and masked: plain matrix products, right for the tens of thousands of clusters of a
level. For more labels, `shortlist` gathers rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.errors import ConfigError
from longtail.kernels.reference.beam import HAIR
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.base import HEADS, HeadInputs, LabelSpace, as_scores, best_first, required
from longtail.nn.heads.chunk_loss import Loss
from longtail.nn.heads.dense import Dense, DenseHeadOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.types import LabelMatrix

_POWER = 3
"""p in the score exp(−max(0, 1 − margin)^p) of a margin."""


@HEADS.register("dense-candidates")
class DenseCandidates(Dense):
    """One row of weights per label; each text is scored with the labels of some clusters."""

    shards = False
    has_logits = False  # scores are those of clusters and labels together
    recordable = False
    cluster_of: Tensor  # (n_labels,) int64

    def __init__(
        self, width: int, index: LabelIndex, options: LabelTableOptions | None = None, loss: Loss = "squared_hinge"
    ) -> None:
        """Score the labels of `index`, for text vectors of `width` numbers; clusters are those of its last level."""
        if loss == "softmax":
            raise ConfigError("loss must be bce or squared_hinge where texts have candidates, got softmax")
        super().__init__(width, index.n_labels, options, loss)
        self.n_clusters = index.n_clusters
        self.register_buffer("cluster_of", torch.from_numpy(index.parents[-1]).long(), persistent=False)
        self.label_counts: Any | None = None
        self.is_started = False

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: LabelTableOptions | None = None) -> DenseCandidates:
        """Return a new head for text vectors of `width` numbers; the loss is BCE unless options say another."""
        loss = options.loss if isinstance(options, DenseHeadOptions) else "bce"
        return cls(width, required(labels.index, "clusters"), options, loss)

    def weigh(self, label_counts: Any) -> None:
        """Let positives count `label_counts` (n_texts, n_labels; sparse) times, of training texts in their order."""
        self.label_counts = label_counts

    def start(self, weight: Tensor, bias: Tensor) -> None:
        """Begin with these weights (n_labels, d) and biases (n_labels,), whatever the labels' frequencies."""
        with torch.no_grad():
            self.table.weight.copy_(weight)
            if self.table.bias is not None:
                self.table.bias.copy_(bias)
        self.is_started = True

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Set biases by the labels' frequencies, unless `start` was given some."""
        if not self.is_started:
            super().init_from_labels(places)

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the sum over the candidates of each text."""
        if self.label_counts is not None and torch.is_grad_enabled():
            counts = self.label_counts[targets.texts]
            by_label = np.argsort(counts.indices, kind="stable")  # the order of targets
            targets = replace(targets, values=on_device(counts.data[by_label], inputs.vectors.device))
        return super().loss(inputs, targets, share, show)

    def allowed(self, inputs: HeadInputs, targets: Targets) -> Tensor | None:
        """Return which labels take part: those of recalled clusters, and of the clusters of a text's own labels."""
        if inputs.clusters is None:
            return None
        chosen = self._spread(inputs.clusters, torch.ones_like(inputs.clusters, dtype=torch.bool), False)
        chosen[targets.rows, self.cluster_of[targets.labels]] = True
        return chosen[:, self.cluster_of]

    @torch.no_grad()
    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels of the recalled clusters; equal scores are ordered by label."""
        with torch.autocast(inputs.vectors.device.type, enabled=False):
            logits = torch.cat([part for _, part in self.table.logits(inputs.vectors, inputs.votes)], 1).float()
        scores = self._log_scores(logits)
        if inputs.clusters is not None and inputs.log_scores is not None:
            scores = scores + self._spread(inputs.clusters, inputs.log_scores, -torch.inf)[:, self.cluster_of]
        best, labels = scores.topk(k)
        best, labels = best_first(best, labels, k)
        return as_scores(best, labels), labels

    def _spread(self, clusters: Tensor, values: Tensor, empty: Any) -> Tensor:
        """Return values (B, n) of clusters (B, n) as a table (B, n_clusters); −1 is no cluster."""
        table = torch.full((len(clusters), self.n_clusters + 1), empty, dtype=values.dtype, device=values.device)
        return table.scatter_(1, clusters.where(clusters >= 0, self.n_clusters), values)[:, : self.n_clusters]

    def _log_scores(self, logits: Tensor) -> Tensor:
        """Return log scores, which keep the order of the logits."""
        if self.table.loss_kind == "bce":
            return F.logsigmoid(logits)
        return -((1 - logits).clamp(min=0) ** _POWER) - HAIR * (-logits).sigmoid()
