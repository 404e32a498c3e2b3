"""Label sets with controlled precision or recall: which threshold gives at least the level that is asked for.

    probabilities of unseen texts, which were right  ->  LabelSets: thresholds, precision and recall of each
    sets.threshold(min_recall=0.8)                   ->  the highest threshold with that recall

Recall is conformal risk control (Angelopoulos et al. 2022): the mean recall over texts like those of training is at
least what is asked for, whatever the model is like. Precision is that of all labels above the threshold together; it is
the lower end of a one-sided 95 % interval over texts. Both are limited by what the model finds, so the highest level
that can be reached is told, and more is refused.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from longtail.errors import ConfigError
from longtail.options import Options
from longtail.scores.rising import check_curve

_N_THRESHOLDS = 100
_NORMAL_95 = 1.645
_FEWEST_KEPT = 100
"""Of fewer kept labels no precision is promised: an interval would say too much."""


class LabelSets(Options):
    """What each of some thresholds promises."""

    thresholds: tuple[float, ...] = ()
    """Probabilities, ascending; the first one keeps the whole list."""
    precision: tuple[float, ...] = ()
    """Share of the kept labels that are right, at least."""
    recall: tuple[float, ...] = ()
    """Share of a text's labels that are kept, in the mean over texts, at least."""

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        check_curve(self.thresholds, self.precision, self.recall)
        return self

    @classmethod
    def fit(cls, probabilities: NDArray[np.float64], right: NDArray[np.bool_], per_text: NDArray[np.int64]) -> Self:
        """Return what thresholds promise, from lists of unseen texts.

        Args:
            probabilities: Of the labels of the lists (n_texts, k), falling; −inf in empty places.
            right: Which labels (n_texts, k) are right.
            per_text: The number of labels of each text, (n_texts,).
        """
        filled = np.sort(probabilities[probabilities > -np.inf])
        places = np.linspace(0, len(filled) - 1, _N_THRESHOLDS).round().astype(np.int64)
        # Thresholds are most needed among the high probabilities, which are few.
        evenly = np.linspace(filled[0], filled[-1], _N_THRESHOLDS)
        thresholds = np.unique(np.concatenate([[0.0], filled[places], evenly]))
        kept, hits = (_at_least(probabilities, thresholds, some) for some in (np.ones(right.shape, bool), right))
        return cls(
            thresholds=tuple(thresholds.tolist()),
            precision=tuple(_precision(kept, hits).tolist()),
            recall=tuple(_recall(hits, per_text).tolist()),
        )

    def threshold(self, *, min_precision: float | None = None, min_recall: float | None = None) -> float:
        """Return the lowest threshold with a precision, or the highest one with a recall; raise if there is none."""
        if min_recall is not None:
            reached = [t for t, recall in zip(self.thresholds, self.recall, strict=True) if recall >= min_recall]
            return max(reached) if reached else _refuse("min_recall", min_recall, max(self.recall, default=0.0))
        level = min_precision or 0.0
        reached = [t for t, precision in zip(self.thresholds, self.precision, strict=True) if precision >= level]
        return min(reached) if reached else _refuse("min_precision", level, max(self.precision, default=0.0))


def _at_least(
    probabilities: NDArray[np.float64], thresholds: NDArray[np.float64], counted: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return how many labels of each text count and reach each threshold, (n_texts, n_thresholds)."""
    reached = np.searchsorted(thresholds, probabilities, side="right")  # how many thresholds; none in empty places
    text = np.broadcast_to(np.arange(len(reached))[:, None], reached.shape)
    shape = (len(reached), len(thresholds) + 1)
    exactly = np.bincount((text * shape[1] + reached)[counted], minlength=shape[0] * shape[1]).reshape(shape)
    return np.asarray(exactly[:, :0:-1].cumsum(axis=1)[:, ::-1])


def _precision(kept: NDArray[np.int64], hits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the kept labels that is right, the lower end of its interval, (n_thresholds,)."""
    n_kept = np.maximum(kept.sum(axis=0), 1)
    share = hits.sum(axis=0) / n_kept
    # The standard error of a ratio of sums over texts; one more text may be all wrong.
    error = np.sqrt(((hits - share * kept) ** 2).sum(axis=0) + 1) / n_kept
    return np.where(n_kept < _FEWEST_KEPT, 0.0, np.maximum(share - _NORMAL_95 * error, 0.0))


def _recall(hits: NDArray[np.int64], per_text: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of a text's labels that is kept, in the mean, if the next text misses all, (n_thresholds,)."""
    some = per_text > 0
    missed = 1 - hits[some] / per_text[some, None]
    return np.asarray(np.maximum(1 - (missed.sum(axis=0) + 1) / (len(missed) + 1), 0))


def _refuse(option: str, level: float, highest: float) -> float:
    if highest <= 0:
        raise ConfigError(
            f"`{option}` needs a model that has more unseen texts to learn it from; train with more texts"
        )
    shown = math.floor(1000 * highest) / 1000
    raise ConfigError(f"`{option}` can be {shown} at most with this model, got {level}; ask for less")
