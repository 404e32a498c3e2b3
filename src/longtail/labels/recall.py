"""What recall gives to a ranker: the likely label clusters of each text, and its vector where recall is neural.

texts (n)  ->  clusters (n, b), log scores (n, b), vectors (n, d) or none
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from longtail.kernels.rows import Rows
from longtail.persist import FolderWriter
from longtail.run.run import Run
from longtail.text.joined import with_embeddings
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL, TopK

_LOWEST_SCORE = np.float32(1e-30)


@dataclass(frozen=True, eq=False)
class Recalled:
    """The best clusters of each text."""

    clusters: NDArray[np.int32]  # (n_texts, b), −1 where there are fewer
    log_scores: NDArray[np.float32]  # (n_texts, b), at most 0
    vectors: NDArray[np.float32] | None = None  # (n_texts, d)

    @classmethod
    def of(cls, best: TopK, vectors: NDArray[np.float32] | None = None) -> Recalled:
        """Return clusters with the logs of their scores, which are cut at 0."""
        scores = np.where(best.labels != NO_LABEL, best.scores, 1)
        log_scores = np.log(np.maximum(scores, _LOWEST_SCORE), dtype=np.float32)
        return cls(best.labels, np.minimum(log_scores, 0), vectors)

    def take(self, rows: NDArray[np.int64]) -> Recalled:
        """Return the same for some of the texts."""
        return Recalled(
            self.clusters[rows], self.log_scores[rows], None if self.vectors is None else self.vectors[rows]
        )

    def joined(self, features: Rows, weight: float) -> Rows:
        """Return `features` with the text vectors beside them, as they are where there is no vector or no weight."""
        return features if self.vectors is None or not weight else with_embeddings(features, self.vectors, weight)


class Recall(Protocol):
    """A trained matcher of texts and label clusters."""

    @property
    def width(self) -> int:
        """Numbers of a text vector; 0 if there are none."""

    def read(self, texts: TextReadings, features: Rows, n: int, run: Run, *, vectors: bool = True) -> Recalled:
        """Return the n best clusters of each text; every text is read once.

        `features` are the TF-IDF rows of the texts. Without `vectors`, text vectors are left out.
        """

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of it."""
