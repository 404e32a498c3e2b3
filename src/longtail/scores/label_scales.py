"""Scale and shift the log odds of each label, as a better model would have them.

    log odds of a label  ->  (scale + scale of the label) · log odds + shift + shift of the label

A model's scores of different labels are not alike: of one label it is too sure, of another not sure enough. What a
better model says of the same texts, which neither has seen, tells by how much. Fitted are the numbers that bring the
model's probabilities nearest to those of the better one (cross-entropy), with those of single labels held near 0.

    lists of a model, lists of a better one, of the same unseen texts  ->  LabelScales: a step of the chain
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveInt

from longtail.errors import DataError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.step import STEPS, ScoreStep
from longtail.types import NO_LABEL, TopK

_SHIFT_PENALTY, _SCALE_PENALTY = 1.0, 10.0
"""L2 penalties of the shifts and of the scales of single labels."""
_STEPS = 15
"""Newton steps, in turn for what all labels share, for their shifts and for their scales."""
_CERTAIN, _FLATTEST = 1e-6, 1e-4
_DIGITS = 4
"""Digits that are kept of numbers of single labels."""


@STEPS.register("label_scales")
class LabelScales(ScoreStep):
    """Orders labels anew by log odds that are scaled and shifted label by label."""

    kind: Literal["label_scales"] = "label_scales"
    length: PositiveInt
    """Labels per text that are ordered anew, at least."""
    scale: float
    """Scale of all labels."""
    shift: float
    """Shift of all labels."""
    scales: tuple[float, ...]
    """What each label adds to the scale."""
    shifts: tuple[float, ...]
    """What each label adds to the shift."""

    def n_candidates(self, k: int) -> int:
        """Return how many labels are looked at, so that `k` can be returned."""
        return max(k, self.length)

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the lists in their new order, with the new probabilities."""
        filled = lists.labels != NO_LABEL
        adjusted = self._of_labels[lists.labels]  # (n_texts, n, 2); an empty place takes those of the last label
        odds = (self.scale + adjusted[..., 0]) * log_odds(lists.scores) + self.shift + adjusted[..., 1]
        odds = np.where(filled, odds, -np.inf)
        if lists.k > self.length:  # labels further behind stay there: a shorter list is the beginning of a longer one
            front, behind = odds[:, : self.length], odds[:, self.length :]
            behind = np.minimum(np.minimum.accumulate(behind, axis=1), front.min(axis=1, keepdims=True))
            odds = np.concatenate([front, behind], axis=1)
        order = np.argsort(-odds, axis=1, kind="stable")[:, :k]
        odds, filled = np.take_along_axis(odds, order, 1), np.take_along_axis(filled, order, 1)
        scores = np.where(filled, 1 / (1 + np.exp(-odds)), -np.inf).astype(np.float32)
        return TopK(np.take_along_axis(lists.labels, order, 1), scores)

    @cached_property
    def _of_labels(self) -> NDArray[np.float64]:
        return np.stack([self.scales, self.shifts], axis=1)  # (n_labels, 2)


def fit_label_scales(lists: TopK, better: TopK, n_labels: int, *, penalty: float = 1.0) -> LabelScales:
    """Return the step that brings scores near those of a better model; both have not seen the texts.

    Only labels that both suggest are compared: what the better model leaves out says nothing about by how much. The
    greater the `penalty`, the less labels differ.
    """
    filled = lists.labels != NO_LABEL
    keys = (np.arange(len(lists), dtype=np.int64)[:, None] * n_labels + lists.labels)[filled]
    known = better.labels != NO_LABEL
    better_keys = (np.arange(len(better), dtype=np.int64)[:, None] * n_labels + better.labels)[known]
    _, here, there = np.intersect1d(keys, better_keys, assume_unique=True, return_indices=True)
    if not len(here):
        raise DataError("two models must suggest some of the same labels, got none; train with more texts")
    x, target = log_odds(lists.scores[filled][here]), better.scores[known][there].astype(np.float64)
    scale, shift, scales, shifts = _fit(x, target, lists.labels[filled][here], n_labels, penalty)
    return LabelScales(
        length=lists.k,
        scale=scale,
        shift=shift,
        scales=tuple(scales.round(_DIGITS).tolist()),
        shifts=tuple(shifts.round(_DIGITS).tolist()),
    )


def log_odds(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the log odds of scores between 0 and 1."""
    clipped = np.clip(scores.astype(np.float64), _CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(clipped / (1 - clipped)))


def _fit(
    x: NDArray[np.float64], target: NDArray[np.float64], labels: NDArray[np.int32], n_labels: int, penalty: float
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Return scale and shift, and those of each label, that minimise the cross-entropy of the targets."""
    scale, shift = 1.0, 0.0
    scales, shifts = np.zeros(n_labels), np.zeros(n_labels)
    shift_penalty, scale_penalty = penalty * _SHIFT_PENALTY, penalty * _SCALE_PENALTY

    def slopes() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gradient and curvature of each example by its log odds."""
        p = 1 / (1 + np.exp(-((scale + scales[labels]) * x + shift + shifts[labels])))
        return p - target, np.maximum(p * (1 - p), _FLATTEST)

    def of_labels(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(labels, weights=values, minlength=n_labels).astype(np.float64)

    for _ in range(_STEPS):
        gradient, curvature = slopes()
        inner = np.stack([x, np.ones_like(x)])
        move = np.linalg.lstsq(inner * curvature @ inner.T, inner @ gradient, rcond=None)[0]
        scale, shift = scale - float(move[0]), shift - float(move[1])
        gradient, curvature = slopes()
        shifts -= (of_labels(gradient) + shift_penalty * shifts) / (of_labels(curvature) + shift_penalty)
        gradient, curvature = slopes()
        step = of_labels(gradient * x) + scale_penalty * scales
        scales -= step / (of_labels(curvature * x * x) + scale_penalty)
    return scale, shift, scales, shifts
