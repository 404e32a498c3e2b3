"""A logistic regression that ranks candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat

from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.structure import Structure

_MOST_STEPS = 300


class LogisticOptions(Options):
    """Logistic regression over standardised features."""

    kind: Literal["logistic"] = "logistic"
    cost: PositiveFloat = 1.0
    """Inverse of the L2 penalty."""


@dataclass(frozen=True, eq=False)
class Logistic:
    """A trained regression."""

    weights: NDArray[np.float64]  # (n_features,)
    bias: NDArray[np.float64]  # (1,)

    @classmethod
    def fit(cls, examples: CandidateExamples, options: LogisticOptions, *, run: Run) -> Logistic:
        """Train on candidates and whether they are right."""
        from sklearn.linear_model import LogisticRegression

        features = examples.features
        mean, scale = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
        scale[scale == 0] = 1
        with run.progress.step("ranker"):
            model = LogisticRegression(C=options.cost, max_iter=_MOST_STEPS).fit(
                (features - mean) / scale, examples.right
            )
        weights = model.coef_[0] / scale
        return cls(weights, model.intercept_ - weights @ mean)

    def scores(self, features: NDArray[np.float32], run: Run) -> NDArray[np.float32]:
        """Return the log odds of each candidate, (n_candidates,)."""
        return np.asarray(features @ self.weights + self.bias, np.float32)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.arrays(name, vars(self))

    @classmethod
    def load(cls, folder: Folder, name: str, n_features: int) -> Logistic:
        """Open what `save` wrote."""
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        return cls(
            stored.finite("weights", np.float64, shape=(n_features,)), stored.finite("bias", np.float64, shape=(1,))
        )
