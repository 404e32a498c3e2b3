"""The clusters a text is ranked in, and the ranking of just their labels.

    scores (B, K), positive clusters  ->  clusters (B, n), valid (B, n)
    vectors (B, d), clusters (B, n)   ->  logits (B, n·s) of their labels, by gathered rows

A table holds its rows by cluster, s a cluster. Here only the rows of candidates are read: (texts, n·s, d) of them at a
time, so slices of the texts keep that in bounds. The gradient of the rows is added up in chunks of the table, like
that of `table.Work`. That needs to know on the host which candidates lie in which chunk: their ids travel there while
the encoder's gradient is computed, and are looked at afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.table import LabelTable

_NUMBERS_AT_ONCE = 1 << 25
"""Weights that are gathered at once."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """Clusters that each text is ranked in, none twice."""

    clusters: Tensor  # (B, n) int64
    valid: Tensor | None = None  # (B, n) bool: those that count; None: all

    def allowed(self, n_clusters: int) -> Tensor:
        """As a mask (B, n_clusters)."""
        valid = torch.ones_like(self.clusters, dtype=torch.bool) if self.valid is None else self.valid
        made = torch.zeros(len(self.clusters), n_clusters, dtype=torch.bool, device=self.clusters.device)
        return made.scatter_(1, self.clusters, valid)

    def n_real(self, sizes: Tensor) -> Tensor:
        """Labels of each text's clusters, (B,), by the sizes (n_clusters,) of all."""
        own = sizes[self.clusters]
        return (own if self.valid is None else own * self.valid).sum(1)


def choose(scores: Tensor, positives: Targets, n: int) -> Candidates:
    """All positive clusters of a text; filled up to `n` with those of the best scores (B, K), which are overwritten."""
    counts = np.bincount(positives.host_rows, minlength=positives.n_texts)
    each = np.maximum(counts, min(n, scores.shape[1]))
    width = int(each.max())
    scores[positives.rows, positives.labels] = torch.inf
    clusters = scores.topk(width).indices  # sorted: positives come first
    if (each == width).all():
        return Candidates(clusters)
    return Candidates(clusters, on_device(np.arange(width) < each[:, None], scores.device))


@dataclass(frozen=True, eq=False)
class Gathered:
    """A micro-batch above the candidates' rows of a table without bias; see `table.RowWork`."""

    vectors: Tensor  # (B, d)
    clusters: Tensor  # (B, n)
    signal: Tensor  # (B, n·s) derivative of the loss by each logit, times how much the text counts
    n_step: float
    fetched: Fetched  # the clusters

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """See `RowWork`."""
        n, group, width = self.clusters.shape[1], table.group, self.vectors.shape[1]
        edges = table.edges // group
        host = self.fetched.numpy().reshape(-1)
        by_cluster = np.argsort(host, kind="stable")
        cuts = np.searchsorted(host[by_cluster], edges).tolist()
        order = on_device(by_cluster, self.vectors.device)  # (B·n,) pairs of text and cluster, by cluster
        clusters, signal = self.clusters.view(-1), self.signal.view(-1, group)
        at_once = max(1, _NUMBERS_AT_ONCE // (group * width))
        for place, (first, last) in enumerate(pairwise(cuts)):
            start, stop = int(edges[place]), int(edges[place + 1])
            made = torch.zeros(stop - start, group, width, device=self.vectors.device)
            for begin in range(first, last, at_once):
                pairs = order[begin : min(begin + at_once, last)]
                outer = signal[pairs][:, :, None] * self.vectors[pairs // n].float()[:, None, :]
                made.index_add_(0, clusters[pairs] - start, outer)
            yield made.view(-1, width), None


def gathered_gradient(
    table: LabelTable, vectors: Tensor, targets: Targets, candidates: Candidates, show: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """What `LabelTable.gradient` gives, over the candidates' rows; and the derivative by each logit (B, n·s).

    Binary cross-entropy. Each target must lie in a valid candidate.
    """
    clusters, valid = candidates.clusters, candidates.valid
    hits = hits_of(targets, clusters, len(table.weight) // table.group, table.group)
    gradients, values, signals = [], [], []
    for part in _slices(table, clusters):
        rows, offsets = _rows(table, clusters[part], vectors.dtype)
        logits = (rows @ vectors[part, :, None]).squeeze(2).float()
        logits = logits if offsets is None else logits + offsets
        if valid is not None:
            logits = logits.masked_fill(~valid[part].repeat_interleave(table.group, 1), -torch.inf)
        if show:
            values.append(F.softplus(torch.where(hits[part], -logits, logits)).sum(1))
        signal = logits.sigmoid_() - hits[part].float()
        gradients.append((signal[:, None].to(rows.dtype) @ rows).squeeze(1).float())
        signals.append(signal)
    return torch.cat(gradients), torch.cat(values) if show else None, torch.cat(signals)


def best_candidates(
    table: LabelTable, vectors: Tensor, clusters: Tensor, above: Tensor, k: int
) -> tuple[Tensor, Tensor]:
    """Log scores and rows (B, ≤ k) of the best rows among clusters (B, n); padding has −inf.

    The log score of a row is log σ of its own logit plus that of its cluster, which is `above` (B, n).
    """
    found, places = [], []
    for part in _slices(table, clusters):
        rows, offsets = _rows(table, clusters[part], torch.float32)
        logits = (rows @ vectors[part, :, None].float()).squeeze(2)
        logits = logits if offsets is None else logits + offsets
        scores = F.logsigmoid(logits) + above[part].repeat_interleave(table.group, 1)
        best, at = scores.topk(min(k, scores.shape[1]))
        found.append(best)
        places.append(clusters[part].gather(1, at // table.group) * table.group + at % table.group)
    return torch.cat(found), torch.cat(places)


class Fetched:
    """Numbers on their way to the host: asked for late, they have long arrived."""

    def __init__(self, values: Tensor) -> None:
        self._values, self._event = values, None
        if values.is_cuda:
            self._values = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            self._values.copy_(values, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    def numpy(self) -> NDArray[Any]:
        """The numbers; waits for the point where they were sent, not for what the device was given since."""
        if self._event is not None:
            self._event.synchronize()
        made: NDArray[Any] = self._values.numpy()
        return made


def on_device(array: NDArray[Any], device: torch.device) -> Tensor:
    """An array there, without waiting for the device."""
    made = torch.from_numpy(array)
    return made.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else made


def hits_of(targets: Targets, clusters: Tensor, n_clusters: int, size: int) -> Tensor:
    """Which labels of the candidates, clusters (B, n) of `size` slots, are labels of the text: (B, n·size) bool.

    Each target must lie in a candidate.
    """
    n_texts, n = clusters.shape
    columns = torch.zeros(n_texts, n_clusters, dtype=torch.int64, device=clusters.device)
    columns.scatter_(1, clusters, torch.arange(n, device=clusters.device).expand(n_texts, -1))
    column = columns[targets.rows, targets.labels // size]
    hits = torch.zeros(n_texts, n * size, dtype=torch.bool, device=clusters.device)
    hits[targets.rows, column * size + targets.labels % size] = True
    return hits


def _rows(table: LabelTable, clusters: Tensor, kind: torch.dtype) -> tuple[Tensor, Tensor | None]:
    """Weights (m, n·s, d) and offsets (m, n·s) of the rows of clusters (m, n)."""
    rows = table.weight.view(-1, table.group, table.weight.shape[1])[clusters].flatten(1, 2).to(kind)
    offset = table.offset
    return rows, None if offset is None else offset.view(-1, table.group)[clusters].flatten(1)


def _slices(table: LabelTable, clusters: Tensor) -> Iterator[slice]:
    """Texts whose candidates' rows are gathered at once."""
    n_texts, n = clusters.shape
    step = max(1, _NUMBERS_AT_ONCE // (n * table.group * table.weight.shape[1]))
    for start in range(0, n_texts, step):
        yield slice(start, start + step)
