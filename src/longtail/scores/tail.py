"""Move rare labels up: multiply scores by how much a right label counts in PSP@k.

The score of label l is multiplied by (w_l / max w)^t, where w_l = 1 / p_l is its inverse propensity, as in PfastreXML.
With t = 1, a score that is a probability becomes what the label is expected to add to PSP@k.

    TopK (n_texts, n), training texts of each label (n_labels,)  ->  TopK (n_texts, k)
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.propensity import USUAL, Propensity, inverse_propensity
from longtail.scores.step import NO_CURVE, STEPS, Curve, ScoreStep
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK


@STEPS.register("tail")
class Tail(ScoreStep):
    """Moves rare labels up."""

    kind: Literal["tail"] = "tail"
    tail_weight: float = Field(0.0, ge=0, le=10)
    """The power t; 0 leaves scores as they are."""
    propensity: Propensity = USUAL
    """Constants of the propensity model."""

    def n_candidates(self, k: int) -> int:
        """Return the length of the list that is ranked again."""
        return longer_list(k) if self.tail_weight else k

    def exported_curve(self) -> Curve:
        """Return no points; raise if labels are weighted."""
        if self.tail_weight:
            raise ConfigError(
                f"`tail_weight` must be 0 for an export, got {self.tail_weight:g}, with which labels are ranked anew; "
                "serve the model with longtail serve instead"
            )
        return NO_CURVE

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the best `k` labels by weighted score."""
        if not self.tail_weight:
            return lists.first(k)
        return favour_tail(
            lists,
            k,
            power=self.tail_weight,
            train_counts=labels.train_counts,
            n_train_texts=labels.n_train_texts,
            constants=self.propensity,
            rarest=int(labels.train_counts[labels.scored].min()),
        )


def longer_list(k: int) -> int:
    """Return how many labels to look at for the best `k` of a weighted list.

    A label further down could only win by outweighing its small score. With 1,000 labels instead of 100, all figures
    were the same to a hundredth of a point (docs/tasks/rare-labels.md).
    """
    return max(10 * k, 100)


def favour_tail(
    lists: TopK,
    k: int,
    *,
    power: float,
    train_counts: NDArray[Any],
    n_train_texts: int,
    constants: Propensity = USUAL,
    rarest: int | None = None,
    scores_at_once: int = 1 << 22,
) -> TopK:
    """Return the best `k` of longer lists after each score is multiplied by (w / max w)^power; ties by label number.

    `train_counts` (n_labels,) are the training texts of each label. `rarest` is the number of training texts of the
    rarest label, whose weight is the largest; by default the smallest of `train_counts`.
    """
    filled = lists.labels != NO_LABEL
    lowest = float(np.min(lists.scores, where=filled, initial=0.0))
    if lowest < 0:
        raise ConfigError(
            f"tail_weight must be 0 where scores can be negative, as margins and logs are, got a score of {lowest:g}"
        )
    fewest = np.min(train_counts) if rarest is None else np.asarray(rarest)
    largest = inverse_propensity(fewest, n_train_texts, constants)
    step = max(1, scores_at_once // max(lists.k, 1))
    blocks = []
    for start in range(0, max(len(lists), 1), step):
        labels, scores, real = (array[start : start + step] for array in (lists.labels, lists.scores, filled))
        weights = inverse_propensity(np.asarray(train_counts)[np.where(real, labels, 0)], n_train_texts, constants)
        weighted = scores * (weights / largest) ** power  # (n_texts, n)
        blocks.append(top_k(labels, np.where(real, weighted, -np.inf), k))
    return TopK.stack(blocks)
