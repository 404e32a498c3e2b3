"""The clusters in which a text is ranked, and the ranking of their labels alone.

    scores (B, K), positive clusters  ->  clusters (B, n), valid (B, n)
    vectors (B, d), clusters (B, n)   ->  logits (B, n·s) of their labels, by gathered rows

A table holds its rows by cluster, s per cluster. Only the rows of candidates are read, (texts, n·s, d) at a time, for
slices of the texts. The gradient of the rows is summed in chunks of the table, as in `table.Work`. For that the host
must know which candidates lie in which chunk: their ids are copied while the encoder's gradient is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.table import LabelTable

if TYPE_CHECKING:
    from longtail.nn.training.parallel import Exchange


@dataclass(frozen=True, eq=False)
class CandidateClusters:
    """The clusters in which each text is ranked, each once."""

    clusters: Tensor  # (B, n) int64
    valid: Tensor | None = None  # (B, n) bool: those that count; None: all

    def allowed(self, n_clusters: int) -> Tensor:
        """Return the candidates as a mask (B, n_clusters)."""
        valid = torch.ones_like(self.clusters, dtype=torch.bool) if self.valid is None else self.valid
        mask = torch.zeros(len(self.clusters), n_clusters, dtype=torch.bool, device=self.clusters.device)
        return mask.scatter_(1, self.clusters, valid)

    def n_real(self, sizes: Tensor) -> Tensor:
        """Return the number of labels in each text's clusters (B,), from the sizes (n_clusters,) of all clusters."""
        counts = sizes[self.clusters]
        return (counts if self.valid is None else counts * self.valid).sum(1)


def choose(scores: Tensor, positives: Targets, n: int) -> CandidateClusters:
    """Return all positive clusters of each text, filled up to `n` with the best by `scores` (B, K).

    `scores` are overwritten.
    """
    counts = np.bincount(positives.host_rows, minlength=positives.n_texts)
    each = np.maximum(counts, min(n, scores.shape[1]))
    width = int(each.max())
    scores[positives.rows, positives.labels] = torch.inf
    clusters = scores.topk(width).indices  # sorted: positives come first
    if (each == width).all():
        return CandidateClusters(clusters)
    return CandidateClusters(clusters, on_device(np.arange(width) < each[:, None], scores.device))


@dataclass(frozen=True, eq=False)
class Gathered:
    """What a micro-batch adds to a step of a table of which it read the candidates' rows only."""

    vectors: Tensor  # (B, d)
    clusters: Tensor  # (B, n)
    signal: Tensor  # (B, n·s) derivative of the loss by each logit, times how much the text counts
    n_step: float
    fetched: Fetched  # the clusters

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield the gradient of each chunk of rows (n_chunk, d), summed over texts."""
        n, group, width = self.clusters.shape[1], table.group, self.vectors.shape[1]
        edges = table.edges // group
        host = self.fetched.numpy().reshape(-1)
        by_cluster = np.argsort(host, kind="stable")
        cuts = np.searchsorted(host[by_cluster], edges).tolist()
        order = on_device(by_cluster, self.vectors.device)  # (B·n,) pairs of text and cluster, by cluster
        clusters, signal = self.clusters.view(-1), self.signal.view(-1, group)
        at_once = max(1, table.numbers_at_once // (group * width))
        for place, (first, last) in enumerate(pairwise(cuts)):
            start, stop = int(edges[place]), int(edges[place + 1])
            gradient = torch.zeros(stop - start, group, width, device=self.vectors.device)
            of_bias = torch.zeros(stop - start, group, device=self.vectors.device)
            for begin in range(first, last, at_once):
                pairs = order[begin : min(begin + at_once, last)]
                outer = signal[pairs][:, :, None] * self.vectors[pairs // n].float()[:, None, :]
                gradient.index_add_(0, clusters[pairs] - start, outer)
                of_bias.index_add_(0, clusters[pairs] - start, signal[pairs])
            yield gradient.view(-1, width), None if table.bias is None else of_bias.view(-1)

    @classmethod
    def gather(cls, works: Sequence[Gathered], exchange: Exchange) -> list[Gathered]:
        """Return one work per process; candidates that only pad have no signal. All processes must call it."""
        group = works[0].signal.shape[1] // works[0].clusters.shape[1]
        size = sum(len(work.vectors) for work in works), max(work.clusters.shape[1] for work in works)
        sizes = exchange.arrays(np.array(size))
        counts, n = [int(n_texts) for n_texts, _ in sizes], max(int(n_clusters) for _, n_clusters in sizes)
        columns = [
            [work.vectors for work in works],
            [F.pad(work.clusters, (0, n - work.clusters.shape[1])) for work in works],
            [F.pad(work.signal, (0, n * group - work.signal.shape[1])) for work in works],
        ]
        n_step = works[0].n_step * len(sizes)
        return [
            cls(vectors, clusters, signal, n_step, Fetched(clusters))
            for vectors, clusters, signal in exchange.rows(columns, counts)
        ]


def gathered_gradient(
    table: LabelTable, vectors: Tensor, targets: Targets, candidates: CandidateClusters, show: bool
) -> tuple[Tensor, Tensor | None, Tensor]:
    """Return what `LabelTable.gradient` does, over the candidates' rows; and the derivative by each logit (B, n·s).

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
    """Return log scores and rows (B, ≤ k) of the best rows in clusters (B, n); padding has −inf.

    The log score of a row is log σ of its own logit plus that of its cluster, which is `above` (B, n).
    """
    best_scores, best_places = [], []
    if table.is_sharded:
        clusters = clusters - table.rows.start // table.group
        inside = (clusters >= 0) & (clusters < len(table.rows) // table.group)
        clusters, above = clusters.where(inside, 0), above.masked_fill(~inside, -torch.inf)
    for part in _slices(table, clusters):
        scores, places = candidate_scores(table, vectors[part], clusters[part], above[part])
        best, at = scores.topk(min(k, scores.shape[1]))
        best_scores.append(best)
        best_places.append(places.gather(1, at))
    of_all = table.of_all_processes
    return of_all(torch.cat(best_scores)), of_all(torch.cat(best_places) + table.rows.start)


def candidate_scores(table: LabelTable, vectors: Tensor, clusters: Tensor, above: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log scores and the rows (B, n·s) of all rows in clusters (B, n), cluster by cluster."""
    rows, offsets = _rows(table, clusters, torch.float32)
    logits = (rows @ vectors[:, :, None].float()).squeeze(2)
    logits = logits if offsets is None else logits + offsets
    slots = torch.arange(table.group, device=clusters.device)
    places = (clusters[:, :, None] * table.group + slots).flatten(1)
    return F.logsigmoid(logits) + above.repeat_interleave(table.group, 1), places


class Fetched:
    """A tensor that is being copied to the host, to be read later without waiting."""

    def __init__(self, values: Tensor) -> None:
        self._values, self._event = values, None
        if values.is_cuda:
            self._values = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
            self._values.copy_(values, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    def numpy(self) -> NDArray[Any]:
        """Return the numbers; wait only until the copy is done, not for later work of the device."""
        if self._event is not None:
            self._event.synchronize()
        array: NDArray[Any] = self._values.numpy()
        return array


def hits_of(targets: Targets, clusters: Tensor, n_clusters: int, size: int) -> Tensor:
    """Return which labels of the candidates, clusters (B, n) of `size` slots, a text has: (B, n·size) bool.

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
    """Return weights (m, n·s, d) and offsets (m, n·s) of the rows of clusters (m, n)."""
    rows = table.weight.view(-1, table.group, table.weight.shape[1])[clusters].flatten(1, 2).to(kind)
    offset = table.offset
    return rows, None if offset is None else offset.view(-1, table.group)[clusters].flatten(1)


def _slices(table: LabelTable, clusters: Tensor) -> Iterator[slice]:
    """Yield slices of the texts whose candidates' rows are gathered at once."""
    n_texts, n = clusters.shape
    step = max(1, table.numbers_at_once // (n * table.group * table.weight.shape[1]))
    for start in range(0, n_texts, step):
        yield slice(start, start + step)
