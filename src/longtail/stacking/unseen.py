"""What a stack and its members are worth on texts that neither they nor the ranker have seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from longtail.metrics import MetricOptions, evaluate
from longtail.types import LabelMatrix, TopK

METRIC = "nDCG@5"
_MEASURED = MetricOptions(at=(5,))


class Unseen(NamedTuple):
    """nDCG@5 of a stack and of each of its members on the held-out texts that the ranker learned from."""

    n_texts: int = 0
    stack: float | None = None
    """None of a model that was saved before this was measured."""
    members: Sequence[float] = ()

    @classmethod
    def of(cls, stack: TopK, members: Sequence[TopK], labels: LabelMatrix) -> Self:
        """Measure lists of the same texts, whose labels are `labels`."""
        return cls(len(labels), ndcg(stack, labels), [ndcg(member, labels) for member in members])


def ndcg(lists: TopK, labels: LabelMatrix) -> float:
    """Return nDCG@5 of lists; texts without labels are left out, and 0 if that is all of them."""
    metrics = evaluate(lists.first(5), labels, labels.texts_per_label(), len(labels), _MEASURED)
    return metrics.values.get(METRIC, 0.0)
