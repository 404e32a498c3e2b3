"""The kinds of rankers that score candidates by their features."""

from __future__ import annotations

from typing import Annotated, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.stacking.logistic import Logistic, LogisticOptions
from longtail.stacking.trees import Trees, TreesOptions

RankerOptions: TypeAlias = Annotated[TreesOptions | LogisticOptions, Field(discriminator="kind")]
"""Options of a ranker of candidates."""


class Ranker(Protocol):
    """Scores candidates by their features."""

    def scores(self, features: NDArray[np.float32], run: Run) -> NDArray[np.float32]:
        """Return the log odds of each candidate."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""


def fit_ranker(
    features: NDArray[np.float32],
    right: NDArray[np.bool_],
    per_text: NDArray[np.int64],
    options: RankerOptions,
    *,
    seed: int,
    run: Run,
) -> Ranker:
    """Train a ranker on the candidates of texts, which follow each other, `per_text` (n_texts,) of each text."""
    if isinstance(options, TreesOptions):
        return Trees.fit(features, right, per_text, options, seed=seed, run=run)
    return Logistic.fit(features, right, options, run=run)


def load_ranker(folder: Folder, name: str, options: RankerOptions, n_features: int) -> Ranker:
    """Open what a ranker's `save` wrote."""
    return (Trees if isinstance(options, TreesOptions) else Logistic).load(folder, name, n_features)
