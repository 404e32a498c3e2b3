"""The metrics that need counts per label: coverage and macro-F1.

The counts are sparse matrices of labels by texts, so texts can be weighted: a resample of texts is a column of weights,
and many resamples are one product.

    Judged, weights (n_texts, n_columns)  ->  values (n_metrics, n_columns)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from longtail.metrics.hits import Judged, cuts
from longtail.metrics.names import MetricOptions


class LabelCounts:
    """True, predicted and correct texts of each label that occurs, for each way to cut the lists."""

    def __init__(self, judged: Judged, options: MetricOptions) -> None:
        sets = cuts(judged, options)
        right = [cut.predicted[judged.hit_text, judged.hit_place] for cut in sets]
        occurs = np.zeros(len(judged.train_counts), bool)
        occurs[judged.true_label] = True
        for cut in sets:
            occurs[judged.labels[cut.predicted]] = True
        ids = np.flatnonzero(occurs)
        row = np.cumsum(occurs) - 1
        self.n_labels = len(ids)

        def count(labels: NDArray[Any], texts: NDArray[Any]) -> sp.csc_matrix:
            """Return a matrix of labels by texts; the pairs come in the order of the texts, which saves a sort."""
            indptr = np.append(0, np.cumsum(np.bincount(texts, minlength=judged.n_texts)))
            return sp.csc_matrix((np.ones(len(labels), np.float32), row[labels], indptr), (len(ids), judged.n_texts))

        self._true = count(judged.true_label, judged.true_text)
        self._right = [count(judged.hit_label[hit], judged.hit_text[hit]) for hit in right]
        self._predicted = [count(judged.labels[cut.predicted], np.nonzero(cut.predicted)[0]) for cut in sets]
        self._covers = [cut.suffix != "" for cut in sets]  # a threshold has no k to cover within
        bands = [part.band for part in judged.bands()]
        self._members = np.stack([judged.in_band(ids.astype(np.int32), band) for band in bands]).astype(np.float32)
        self.names = [
            (band, f"{metric}{cut.suffix}")
            for cut, covers in zip(sets, self._covers, strict=True)
            for metric in (("coverage", "macro-F1") if covers else ("macro-F1",))
            for band in bands
        ]
        """(band, metric) of each row of `values`."""

    def values(self, weights: NDArray[Any]) -> NDArray[np.float64]:
        """Return each metric if a text counts as often as its weight: (n_metrics, n_columns), in their precision."""
        weights = np.ascontiguousarray(weights)
        true = self._true @ weights  # (n_labels, n_columns)
        rows: list[NDArray[np.float64]] = []
        for covers, right_of, predicted_of in zip(self._covers, self._right, self._predicted, strict=True):
            right, either = right_of @ weights, predicted_of @ weights + true
            if covers:
                rows.append(self._share(right > 0, true > 0))
            rows.append(self._share(2.0 * right / np.maximum(either, 1.0), either > 0))
        return np.concatenate(rows)

    def _share(self, above: NDArray[Any], below: NDArray[Any]) -> NDArray[np.float64]:
        """Return the ratio of sums over each band's labels; NaN where a resample has no label of the band."""
        above, below = self._members @ above, self._members @ below
        share: NDArray[np.float64] = np.full(above.shape, np.nan)
        np.divide(above, below, out=share, where=below > 0, dtype=np.float64)
        return share
