"""What a stack and its members say of texts that neither they nor the ranker have seen, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longtail.metrics import MetricOptions, evaluate
from longtail.types import LabelMatrix, TopK

METRIC = "nDCG@5"
_MEASURED = MetricOptions(at=(5,))


class HeldOutLists(NamedTuple):
    """Lists of the same training texts; whoever made a list has not seen its text."""

    rows: NDArray[np.int64]  # (n_texts,) row numbers in the training data, ascending
    stack: TopK
    members: Sequence[TopK]


class HeldOutFigures(NamedTuple):
    """nDCG@5 of a stack and of each of its members on held-out texts."""

    n_texts: int = 0
    stack: float | None = None
    """None of a model that was saved before this was measured."""
    members: Sequence[float] = ()

    @classmethod
    def of(cls, lists: HeldOutLists, labels: LabelMatrix) -> Self:
        """Measure lists; `labels` are those of their texts."""
        return cls(len(labels), ndcg(lists.stack, labels), [ndcg(member, labels) for member in lists.members])


def ndcg(lists: TopK, labels: LabelMatrix) -> float:
    """Return nDCG@5 of lists; texts without labels are left out, and 0 if that is all of them."""
    metrics = evaluate(lists.first(5), labels, labels.texts_per_label(), len(labels), _MEASURED)
    return metrics.values.get(METRIC, 0.0)
