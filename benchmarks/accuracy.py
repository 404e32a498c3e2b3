"""How right a system's top 20 are, by longtail's own metrics: the one place where they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from longtail.metrics import MetricOptions, evaluate
from longtail.types import LabelMatrix, TopK

NAMES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "R@20", "F1@5")


def accuracy_of(top: Path, features: Path) -> dict[str, dict[str, float]]:
    """`all`: metrics over all evaluation texts; `new`: over those that do not occur word for word in train."""
    found = np.load(top)
    truth, train = (_label_matrix(features / f"{name}.npz") for name in ("Y_eval", "Y_train"))

    def values(rows: np.ndarray) -> dict[str, float]:
        predicted = TopK(found["labels"][rows], found["scores"][rows])
        metrics = evaluate(
            predicted, truth.take(rows), train.texts_per_label(), train.n_texts, MetricOptions(at=(1, 3, 5, 20))
        )
        return {name: round(metrics.values[name], 5) for name in NAMES}

    repeated = np.load(features / "repeated.npy")
    return {"all": values(np.arange(truth.n_texts)), "new": values(np.flatnonzero(~repeated))}


def _label_matrix(file: Path) -> LabelMatrix:
    stored = sp.load_npz(file)
    return LabelMatrix(stored.indptr.astype(np.int64), stored.indices.astype(np.int32), stored.shape[1])
