"""What cross-validation needs: folds of texts, and scorers by the name of a metric.

    search = GridSearchCV(
        longtail.Linear(),
        {"ranker__threshold": [0.01, 0.1]},
        scoring=longtail.scorer("nDCG@5"),
        cv=longtail.KFold(3),
    )
    search.fit(texts, label_lists)          or an indicator matrix, or search.fit(data.train)

scikit-learn's own scorers and stratified folds ask for the type of the labels, and refuse lists; these never ask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError, DataError
from longtail.metrics.names import options_for


@dataclass(frozen=True)
class KFold:
    """Folds of texts, each in turn the part to test on, drawn at random; a Split, lists and tables can be divided.

    For example:

        for train, test in longtail.KFold(3).split(texts):
            ...                                            row numbers
    """

    n_splits: int = 5
    shuffle: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.n_splits < 2:
            raise ConfigError(f"n_splits must be at least 2, got {self.n_splits}")

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of folds; the arguments are there for scikit-learn and not looked at."""
        return self.n_splits

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield the row numbers to train on and to test on, fold by fold; `y` and `groups` are not looked at."""
        n_texts = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_texts < self.n_splits:
            raise DataError(f"{self.n_splits} folds need at least as many texts, got {n_texts:,}")
        rows = np.random.default_rng(self.seed).permutation(n_texts) if self.shuffle else np.arange(n_texts)
        for fold in np.array_split(rows, self.n_splits):
            test = np.sort(fold)
            yield np.setdiff1d(rows, test), test


@dataclass(frozen=True)
class Scorer:
    """A metric as `scoring` of scikit-learn: called with a trained model, texts and their labels."""

    metric: str

    def __post_init__(self) -> None:
        options_for(self.metric)

    def __call__(self, estimator: Any, X: Any, y: Any = None) -> float:
        """Return the metric of a model, of a pipeline that ends in one, or of a search over one."""
        while hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        if hasattr(estimator, "steps"):
            X = estimator[:-1].transform(X) if len(estimator.steps) > 1 else X
            return self(estimator.steps[-1][1], X, y)
        return float(estimator.score(X, y, metric=self.metric))


def scorer(metric: str) -> Scorer:
    """Return a scorer for `GridSearchCV` and its like, by the name of a metric: `nDCG@5`, `P@1`, `PSP@3`, `R@10`."""
    return Scorer(metric)
