"""Turn scores into probabilities: a score of 0.8 is right 80 % of the time.

One curve for all labels is fitted by isotonic regression to the best labels of texts that the model has not seen. The
curve rises, so the order of a list stays as it is; labels that get the same probability keep the order of their scores.

    scores of unseen texts, which of them were right  ->  Calibrate: a step of the chain
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt, model_validator

from longtail.errors import DataError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.expected_recall import ExpectedRecall
from longtail.scores.label_sets import LabelSets
from longtail.scores.rising import check_curve, rising_curve
from longtail.scores.step import STEPS, Curve, ScoreStep
from longtail.types import NO_LABEL, LabelMatrix, TopK

LIST_LENGTH = 50
"""Length of the lists that a calibration is fitted to; label sets are at most as long."""
_N_FITTED = 5
"""How many labels of each text the curve is fitted to; further down, the same score is less often right."""


@STEPS.register("calibrate")
class Calibrate(ScoreStep):
    """Shows the probability that a label is right instead of its score."""

    kind: Literal["calibrate"] = "calibrate"
    scores: tuple[float, ...]
    """Scores, ascending; between two of them the probability is interpolated."""
    probabilities: tuple[float, ...]
    """The probability at each of `scores`, ascending."""
    f1_threshold: float
    """The probability from which labels must be kept for the best micro-F1 (`threshold="auto"`)."""
    sets: LabelSets = Field(default_factory=LabelSets)
    """Thresholds of label sets with controlled precision or recall."""
    recall: ExpectedRecall = Field(default_factory=ExpectedRecall)
    """How many labels of a text a list is expected to have."""
    n_texts: PositiveInt = 1
    """Number of texts that it was fitted to."""

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        check_curve(self.scores, self.probabilities)
        if not self.scores:
            raise ValueError("a calibration must have points")
        return self

    def exported_curve(self) -> Curve:
        """Return the points of the calibration."""
        return self.scores, self.probabilities

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the lists with probabilities, in the same order."""
        lists = lists.first(k)
        return TopK(lists.labels, np.where(lists.labels == NO_LABEL, lists.scores, self.probability(lists.scores)))

    def probability(self, scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of each score."""
        return np.interp(scores, self.scores, self.probabilities).astype(np.float32)


def fit_calibration(lists: TopK, labels: LabelMatrix, n_assigned: float | None = None) -> Calibrate:
    """Return the step that calibrates these scores.

    Args:
        lists: What a model suggests for texts that it has not seen.
        labels: The labels of these texts; those that are not in the lists count as missed for the threshold.
        n_assigned: How many labels the texts have for the threshold; by default all. The model of the lists may miss
            more than the one whose scores are calibrated.
    """
    filled, right = lists.labels != NO_LABEL, are_right(lists, labels)
    if not filled.any():
        raise DataError("calibration needs texts with suggested labels, got none")
    first = filled & (np.arange(lists.k) < _N_FITTED)
    knots, values = rising_curve(lists.scores[first].astype(np.float64), right[first].astype(np.float64))
    probabilities = np.where(filled, np.interp(np.where(filled, lists.scores, 0), knots, values), -np.inf)
    return Calibrate(
        scores=tuple(knots.tolist()),
        probabilities=tuple(values.tolist()),
        f1_threshold=best_f1_threshold(
            probabilities[filled], right[filled], len(labels.indices) if n_assigned is None else n_assigned
        ),
        sets=LabelSets.fit(probabilities, right, labels.labels_per_text()),
        recall=ExpectedRecall.fit(probabilities, right, labels.labels_per_text()),
        n_texts=len(lists),
    )


def are_right(lists: TopK, labels: LabelMatrix) -> NDArray[np.bool_]:
    """Return which labels of the lists (n_texts, k) are labels of their texts."""
    n_labels = np.int64(labels.n_labels)
    texts = np.repeat(np.arange(labels.n_texts, dtype=np.int64), labels.labels_per_text())
    keys = np.arange(len(lists), dtype=np.int64)[:, None] * n_labels + lists.labels
    return np.asarray(np.isin(keys, texts * n_labels + labels.indices) & (lists.labels != NO_LABEL))


def best_f1_threshold(probabilities: NDArray[np.float64], right: NDArray[np.bool_], n_assigned: float) -> float:
    """Return the threshold that gives the best micro-F1, where texts have `n_assigned` labels in all."""
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum(right[order])
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + n_assigned)
    ordered = probabilities[order]
    last_of_its_value = np.append(ordered[1:] < ordered[:-1], True)
    return float(ordered[np.argmax(np.where(last_of_its_value, f1, -1))])
