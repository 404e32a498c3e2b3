"""The kinds of rankers that score candidates by their features."""

from __future__ import annotations

from typing import Annotated, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.errors import DataError
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
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


def fit_ranker(examples: CandidateExamples, options: RankerOptions, *, seed: int, run: Run) -> Ranker:
    """Return a ranker that was trained on the candidates of texts; some must be right."""
    if not examples.right.any():
        raise DataError(
            "a stack needs texts whose labels its members find when they have not seen them, got none; train with "
            "more texts"
        )
    if isinstance(options, TreesOptions):
        return Trees.fit(examples, options, seed=seed, run=run)
    return Logistic.fit(examples, options, run=run)


def load_ranker(folder: Folder, name: str, options: RankerOptions, n_features: int) -> Ranker:
    """Open what a ranker's `save` wrote."""
    return (Trees if isinstance(options, TreesOptions) else Logistic).load(folder, name, n_features)
