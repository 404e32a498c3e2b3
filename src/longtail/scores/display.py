"""Turn scores that lists are ordered by into scores that people can read.

A linear ranker's score is exp(−max(0, 1 − margin)^p), and nearly all of these are 0 or 1. Shown is
exp(−(−log score)^(1/p)): where the matcher is sure, that is exp(margin − 1), 0.37 for a margin of 0. The order stays.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import NonNegativeInt

from longtail.labels.model_labels import ModelLabels
from longtail.scores.step import STEPS, ScoreStep
from longtail.types import NO_LABEL, TopK


@STEPS.register("display")
class Display(ScoreStep):
    """Spreads the scores of a linear ranker over 0..1."""

    kind: Literal["display"] = "display"
    power: NonNegativeInt
    """The p that scores were made with; 0 leaves them as they are."""

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the lists with readable scores, in the same order."""
        return display_scores(lists.first(k), self.power)


def display_scores(lists: TopK, power: int) -> TopK:
    """Return the lists with scores exp(−(−log score)^(1/power)).

    Scores above 1, which are votes of members by rank, stay as they are; so do all scores if `power` is 0.
    """
    if power == 0 or lists.scores.max(initial=0) > 1:
        return lists
    with np.errstate(divide="ignore"):
        distance = -np.log(np.clip(lists.scores, 0, 1))  # (n_texts, k)
    scores = np.exp(-(distance ** np.float32(1 / power)))
    return TopK(lists.labels, np.where(lists.labels == NO_LABEL, lists.scores, scores))
