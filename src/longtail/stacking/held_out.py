"""What a stack and its members say of texts that neither they nor the ranker have seen, and what that is worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from longtail.metrics import MetricOptions, evaluate
from longtail.persist import Folder, FolderWriter
from longtail.structure import Structure
from longtail.types import NO_LABEL, LabelMatrix, TopK

METRIC = "nDCG@5"
_MEASURED = MetricOptions(at=(5,))
_FILE = "held-out"


class HeldOutFigures(NamedTuple):
    """nDCG@5 of a stack and of each of its members on held-out texts."""

    n_texts: int
    stack: float
    members: Sequence[float]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Lists of some training texts; whoever made a list has not seen its text."""

    rows: NDArray[np.int64]  # (n_texts,) row numbers in the training data, ascending
    lists: TopK  # (n_texts, k) of the stack, as the ranker scores them
    figures: HeldOutFigures

    @classmethod
    def of(cls, rows: NDArray[np.int64], stack: TopK, members: Sequence[TopK], labels: LabelMatrix) -> Self:
        """Measure the lists of a stack and its members; `labels` are those of the texts."""
        figures = HeldOutFigures(len(rows), ndcg(stack, labels), [ndcg(member, labels) for member in members])
        return cls(rows, stack, figures)

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder, if there are any."""
        if not len(self.rows):
            return
        writer.arrays(_FILE, {"rows": self.rows, "labels": self.lists.labels, "scores": self.lists.scores})
        writer.manifest[_FILE] = self.figures._asdict()

    @classmethod
    def load(cls, folder: Folder, n_train_texts: int, n_labels: int) -> Self:
        """Open what `save` wrote; no text where a model was saved before there was such a file."""
        if _FILE not in folder.manifest:
            return cls(np.empty(0, np.int64), TopK.empty(0, 1), HeldOutFigures(0, 0.0, ()))
        stored = Structure(folder.arrays(_FILE), f"{folder.path}, {_FILE}")
        rows = stored.numbers("rows", np.int64, below=n_train_texts)
        stored.require("rows", bool((rows[1:] > rows[:-1]).all()), "rise")
        labels = stored.array("labels", np.int32, shape=(len(rows), None))
        inside = bool(((labels >= NO_LABEL) & (labels < n_labels)).all())
        stored.require("labels", inside, f"lie from {NO_LABEL} to below {n_labels:,}")
        scores = stored.array("scores", np.float32, shape=labels.shape)
        stored.require("scores", not np.isnan(scores).any(), "be numbers")
        return cls(rows, TopK(labels, scores), HeldOutFigures(**folder.manifest[_FILE]))


def ndcg(lists: TopK, labels: LabelMatrix) -> float:
    """Return nDCG@5 of lists; texts without labels are left out, and 0 if that is all of them."""
    metrics = evaluate(lists.first(5), labels, labels.texts_per_label(), len(labels), _MEASURED)
    return metrics.values.get(METRIC, 0.0)
