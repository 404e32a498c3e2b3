"""Leave labels out that score too low."""

from __future__ import annotations

from typing import Literal

import numpy as np

from longtail.labels.model_labels import ModelLabels
from longtail.scores.step import STEPS, ScoreStep
from longtail.types import NO_LABEL, TopK


@STEPS.register("threshold")
class Threshold(ScoreStep):
    """Leaves out labels whose score is below `threshold`."""

    kind: Literal["threshold"] = "threshold"
    threshold: float
    """The lowest score that is kept."""

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the lists with empty places (`NO_LABEL`, -inf) instead of labels below the threshold."""
        return leave_out_low(lists.first(k), self.threshold)


def leave_out_low(lists: TopK, threshold: float) -> TopK:
    """Return the lists with empty places (`NO_LABEL`, -inf) instead of labels that score below a threshold."""
    low = lists.scores < threshold
    scores = np.where(low, np.float32(-np.inf), lists.scores)
    return TopK(np.where(low, np.int32(NO_LABEL), lists.labels), scores)
