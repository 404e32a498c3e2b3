"""Label-wise attention within recalled clusters: a lower level of a tree of labels.

    H (B, T, d), clusters (B, n)  ->  logits (B, n·s) of the labels in them

    score(label) = σ(its logit) · score of its cluster, computed as a sum of logs

In training the clusters of a text are those of its labels, filled up with the ones that the trained level above found
most likely (`fix_candidates`): whole clusters, so that a positive is never left out and none occurs twice
(docs/methods/lightxml.md#candidates). Only the rows of candidates are gathered, (B, c, d) at a time.

Clusters are padded to the largest one, s slots: place = cluster · s + slot. Places without a label have the logit −inf,
so they have no loss and no gradient and are never returned.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from longtail.errors import ConfigError, DataError
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.attention import Words
from longtail.nn.heads.base import HEADS, HeadInputs, best_first
from longtail.nn.heads.candidates import CandidateClusters, choose, hits_of
from longtail.nn.heads.labelwise import Chunk, Labelwise, LabelwiseOptions
from longtail.nn.heads.shortlist import cluster_slots, cluster_targets
from longtail.types import LabelMatrix


@HEADS.register("labelwise-candidates")
class LabelwiseWithin(Labelwise):
    """Scores the labels of given clusters, each with its own attention."""

    built_from = "index"
    reads_clusters = True
    recordable = False

    order: NDArray[np.int64]
    labels: Tensor  # (K·s,) `order` on the device

    def __init__(self, width: int, index: LabelIndex, options: LabelwiseOptions | None = None) -> None:
        """Make a head for token states of `width` numbers; clusters are those of the last level of `index`."""
        slots = cluster_slots(index)
        super().__init__(width, index.n_labels, options, slots.size)
        self.order = slots.reshape(-1)
        self.n_clusters, self.size = slots.shape
        self.register_buffer("labels", torch.from_numpy(self.order), persistent=False)
        self.fixed: NDArray[Any] | None = None

    def fix_candidates(self, clusters: NDArray[Any]) -> None:
        """Set the clusters (n_texts, n) of each training text, best first; −1 where there are fewer."""
        if clusters.ndim != 2 or clusters.size == 0 or clusters.min() < -1 or clusters.max() >= self.n_clusters:
            raise DataError(
                f"candidates must be clusters 0 to {self.n_clusters - 1}, one row per text; got {clusters!r}"
            )
        self.fixed = clusters

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start biases from a label's odds among the texts that have its cluster as a candidate."""
        if self.bias is None:
            return
        fixed = self._fixed()
        clusters = places.renumber(np.arange(len(self.order)) // self.size, self.n_clusters)
        texts = np.repeat(np.arange(len(fixed)), fixed.shape[1])[fixed.reshape(-1) >= 0]
        keys = np.concatenate([texts * self.n_clusters + fixed[fixed >= 0], _keys(clusters)])
        n_texts = np.bincount(np.unique(keys) % self.n_clusters, minlength=self.n_clusters)
        self.begin_with(places.texts_per_label(), np.repeat(n_texts, self.size))

    def training_chunks(self, words: Words, targets: Targets) -> Iterator[Chunk]:
        """Yield the labels of the fixed clusters and of the clusters of each text's labels."""
        chosen = self.choose(targets, words.states.device)
        yield from self._gathered(words, chosen, targets)

    def choose(self, targets: Targets, device: torch.device) -> CandidateClusters:
        """Return the clusters that texts are trained on."""
        fixed = on_device(self._fixed()[targets.texts].astype(np.int64), device)  # (B, n)
        first_best = torch.arange(fixed.shape[1], 0, -1.0, device=device).expand(fixed.shape)
        scores = torch.full((len(fixed), self.n_clusters + 1), -torch.inf, device=device)
        scores.scatter_(1, fixed.where(fixed >= 0, self.n_clusters), first_best)
        scores = scores[:, : self.n_clusters].contiguous()  # without the column of missing clusters
        positives = cluster_targets(targets, self.size, device)
        chosen = choose(scores, positives, fixed.shape[1])
        real = scores.gather(1, chosen.clusters) > -torch.inf
        return CandidateClusters(chosen.clusters, real if chosen.valid is None else real & chosen.valid)

    def labels_at(self, places: Tensor) -> Tensor:
        """Return the labels at places."""
        return self.labels[places]

    @torch.no_grad()
    def ranked(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return log scores and places of the k best labels of `inputs.clusters`; place −1 where there are fewer."""
        clusters, above = inputs.clusters, inputs.log_scores
        if clusters is None or above is None:
            raise ValueError("inputs must have clusters and their log_scores, got none; recall clusters first")
        words, candidates = self.words_to_rank(inputs), CandidateClusters(clusters, above > -torch.inf)
        with torch.autocast(inputs.vectors.device.type, enabled=False):
            logits = [self.logits(words, chunk)[:, : chunk.n] for chunk in self._gathered(words, candidates)]
        scores = F.logsigmoid(torch.cat(logits, 1)) + above.repeat_interleave(self.size, 1)
        places = self._places(clusters)
        return best_first(scores, places, k, self.labels[places])

    def _gathered(self, words: Words, candidates: CandidateClusters, targets: Targets | None = None) -> Iterator[Chunk]:
        clusters, device = candidates.clusters, words.states.device
        hits = None if targets is None else hits_of(targets, clusters, self.n_clusters, self.size).float()
        step = max(1, self.labels_at_once(words) // self.size)
        for start in range(0, clusters.shape[1], step):
            part = slice(start, start + step)
            places = self._places(clusters[:, part])
            padding_mask = self.labels[places] < 0
            if candidates.valid is not None:
                padding_mask = padding_mask | ~candidates.valid[:, part].repeat_interleave(self.size, 1)
            bias = torch.zeros(places.shape, device=device) if self.bias is None else self.bias[places]
            yield Chunk(
                places,
                self.rows[places].to(words.states.dtype),
                bias.masked_fill(padding_mask, -torch.inf),
                None if self.outputs is None else self.outputs[places],
                None if hits is None else hits[:, start * self.size : (start + step) * self.size],
            ).filled()

    def _places(self, clusters: Tensor) -> Tensor:
        """Return the places of all slots of clusters (B, n), (B, n·s)."""
        slots = torch.arange(self.size, device=clusters.device)
        places: Tensor = clusters[:, :, None] * self.size + slots
        return places.flatten(1)

    def _fixed(self) -> NDArray[Any]:
        if self.fixed is None:
            raise ConfigError("candidates must be given before training, got none; use fix_candidates")
        return self.fixed


def _keys(labels: LabelMatrix) -> NDArray[np.int64]:
    """Return each pair of a text and a label as one number."""
    texts = np.repeat(np.arange(labels.n_texts), labels.labels_per_text())
    return texts * labels.n_labels + labels.indices
