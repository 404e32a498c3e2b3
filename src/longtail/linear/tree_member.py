"""A linear tree together with the features that it reads: the member of a linear ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.labels.vectors import VectorOptions
from longtail.linear.tree import BeamOptions, LinearTree
from longtail.persist import FolderWriter
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.readings import TextReadings
from longtail.types import TopK


@dataclass(frozen=True, eq=False)
class TreeMember:
    """A trained tree, and what it was trained with."""

    tree: LinearTree
    features: TextFeatures
    search: BeamOptions
    vectors: VectorOptions
    seed: int
    texts_per_cluster: NDArray[np.int64]  # (n_clusters,)

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text."""
        return self.tree.predict(texts.rows(self.features, run), k, self.search, run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write the tree into a model folder."""
        self.tree.save(writer, name)

    def describe(self) -> dict[str, Any]:
        """Return label vectors, seed, weights, and texts per cluster (X-BERT's figure 1)."""
        return {
            "vectors": "+".join(self.vectors.kinds),
            "seed": self.seed,
            "n_weights": self.tree.n_weights,
            "texts_per_cluster": self.texts_per_cluster,
        }
