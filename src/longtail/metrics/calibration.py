"""How far scores are from probabilities: of the labels with a score of 0.8, 80 % should be right.

Each suggested label has a score s and is right (1) or wrong (0). Labels fall into 15 bins by score: [0, 1/15), [1/15,
2/15), ..., [14/15, 1]. An empty place of a list has no score and does not count.

    ECE@k    sum over the bins of |sum of s − number of right ones|, divided by the number of labels
    Brier@k  mean of (s − right)²

Judged  ->  Scored: the filled places of all lists  ->  reliability: one row per bin
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.metrics.hits import Judged
from longtail.metrics.names import ALL, BANDS, MetricOptions

N_BINS = 15


class Scored(NamedTuple):
    """The filled places of all lists, down to some length; none at all if a score there is no probability."""

    text: NDArray[np.int64]  # (n_places,) ascending
    place: NDArray[np.int64]  # (n_places,) from 0
    label: NDArray[np.int32]  # (n_places,)
    score: NDArray[np.float64]  # (n_places,)
    right: NDArray[np.bool_]  # (n_places,)

    @property
    def bin(self) -> NDArray[np.int64]:
        """The bin of each score."""
        return np.minimum((self.score * N_BINS).astype(np.int64), N_BINS - 1)

    def take(self, rows: NDArray[np.bool_]) -> Scored:
        """Return some of the places."""
        return Scored(self.text[rows], self.place[rows], self.label[rows], self.score[rows], self.right[rows])


class Bin(NamedTuple):
    """The suggested labels whose score lies in a bin."""

    low: float
    high: float
    n: int
    mean_score: float
    right: float
    """The share of them that are right."""


def scored_places(judged: Judged, length: int) -> Scored:
    """Return the filled ones among the first `length` places; none if one of their scores is not in 0..1."""
    labels, scores = judged.labels[:, :length], judged.scores[:, :length]
    hit = np.zeros(judged.labels.shape, bool)
    hit[judged.hit_text, judged.hit_place] = True
    text, place = np.nonzero(judged.in_band(labels, ALL))
    score = scores[text, place].astype(np.float64)
    scored = Scored(text, place, labels[text, place], score, hit[text, place])
    return scored if ((score >= 0) & (score <= 1)).all() else scored.take(np.zeros(len(score), bool))


def reliability(judged: Judged, k: int) -> list[Bin]:
    """Return the bins that a label among the first `k` falls into, lowest first; none if scores are not in 0..1."""
    scored = scored_places(judged, k)
    n, score, right = (np.bincount(scored.bin, weights, N_BINS) for weights in (None, scored.score, scored.right))
    return [
        Bin(i / N_BINS, (i + 1) / N_BINS, int(n[i]), float(score[i] / n[i]), float(right[i] / n[i]))
        for i in np.flatnonzero(n).tolist()
    ]


class CalibrationErrors:
    """ECE@k as a function of the weights of texts; NaN where no label has a score in 0..1."""

    def __init__(self, judged: Judged, options: MetricOptions) -> None:
        scored = scored_places(judged, max(options.at))
        self._bands = [part.band for part in judged.bands()]
        self._ends = sorted(options.at)
        self.names = [(band, f"ECE@{k}") for k in self._ends for band in self._bands]
        """(band, metric) of each row of `values`."""
        # Lists are cut into segments at each k, so that a label is in one row only: that of its segment, band and bin.
        segment = np.searchsorted(self._ends, scored.place, side="right")
        self._shape = (len(self._ends), len(BANDS), N_BINS)
        row = np.ravel_multi_index((segment, judged.label_bands[scored.label], scored.bin), self._shape)
        shape = (int(np.prod(self._shape)), judged.n_texts)
        self._gap = sp.csr_matrix((scored.score - scored.right, (row, scored.text)), shape)
        self._n = sp.csr_matrix((np.ones(len(row)), (row, scored.text)), shape)

    def values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each metric if a text counts as often as its weight: (n_metrics, n_columns)."""
        gap, n = (self._sums(matrix, weights) for matrix in (self._gap, self._n))
        above, below = np.abs(gap).sum(axis=2), n.sum(axis=2)  # (n_lengths, n_bands, n_columns)
        share: NDArray[np.float64] = np.full(above.shape, np.nan)
        np.divide(above, below, out=share, where=below > 0)
        return share.reshape(len(self.names), -1)

    def _sums(self, matrix: sp.csr_matrix, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return weighted sums over texts by length, band of the truth and bin: (n_lengths, n_bands, 15, n_columns)."""
        sums = (matrix @ np.ascontiguousarray(weights)).reshape((*self._shape, -1)).cumsum(axis=0)
        by_band = dict(zip(BANDS, np.moveaxis(sums, 1, 0), strict=True)) | {ALL: sums.sum(axis=1)}
        return np.stack([by_band[band] for band in self._bands], axis=1)
