"""All metrics of one prediction: `evaluate` and the `Metrics` that it returns.

TopK (n_texts, k), LabelMatrix (n_texts, n_labels), training texts per label (n_labels,)  ->  Metrics
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.metrics.by_label import LabelCounts
from longtail.metrics.by_text import text_sums
from longtail.metrics.calibration import CalibrationErrors
from longtail.metrics.hits import judge
from longtail.metrics.names import ALL, MetricOptions, by_band
from longtail.propensity import Propensity
from longtail.types import LabelMatrix, TopK


@dataclass(frozen=True)
class Metrics:
    """Fractions in 0..1 by name (`P@1`), over all labels and by band; without those that cannot be measured."""

    values: dict[str, float]
    bands: dict[str, dict[str, float]]
    n_texts: int  # with true labels: those that were measured
    n_texts_without_labels: int
    n_texts_by_band: dict[str, int]  # with a true label of the band
    n_labels_by_band: dict[str, int]  # with a true text
    propensities: tuple[Propensity, ...]
    threshold: float | None  # of micro-F1, micro-P, micro-R and macro-F1

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {
            "metrics": self.values,
            "bands": self.bands,
            "n_texts": self.n_texts,
            "n_texts_without_labels": self.n_texts_without_labels,
            "n_texts_by_band": self.n_texts_by_band,
            "n_labels_by_band": self.n_labels_by_band,
            "propensities": [constants.plain() for constants in self.propensities],
            "threshold": self.threshold,
        }


def evaluate(
    predicted: TopK,
    truth: LabelMatrix,
    train_counts: NDArray[Any],
    n_train_texts: int,
    options: MetricOptions | None = None,
) -> Metrics:
    """Return all metrics of `predicted` against `truth`.

    `train_counts` has the number of training texts of each label; labels beyond its end have none.
    """
    options = options or MetricOptions()
    judged = judge(predicted, truth, train_counts, n_train_texts, options)
    sums = ((each, float(each.below.sum())) for each in text_sums(judged, options))
    rows = [(each.band, each.name, float(each.above.sum()) / below) for each, below in sums if below > 0]
    for part in (LabelCounts(judged, options), CalibrationErrors(judged, options)):
        values = part.values(np.ones((judged.n_texts, 1)))[:, 0].tolist()
        rows += [(band, name, value) for (band, name), value in zip(part.names, values, strict=True)]
    overall, bands = by_band((row for row in rows if not math.isnan(row[2])), options)
    bands_of_truth = [part for part in judged.bands() if part.band != ALL]
    return Metrics(
        values=overall,
        bands=bands,
        n_texts=judged.n_texts,
        n_texts_without_labels=judged.n_texts_without_labels,
        n_texts_by_band={part.band: int(np.count_nonzero(part.n_true)) for part in bands_of_truth},
        n_labels_by_band={part.band: len(np.unique(part.true_label)) for part in bands_of_truth},
        propensities=options.constants(),
        threshold=options.threshold,
    )
