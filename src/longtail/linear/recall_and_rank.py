"""Recall label clusters by any means, then rank the labels inside with linear classifiers.

texts, TF-IDF rows (n, n_features)  ->  clusters (n, b)  ->  TopK (n, k)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.labels.clusters import ClusterShares
from longtail.labels.recall import Recall
from longtail.linear.layer import Layer
from longtail.linear.ranker import ScoreOptions, rank
from longtail.persist import FolderWriter
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.readings import TextReadings
from longtail.types import TopK


@dataclass(frozen=True, eq=False)
class RecallAndRank:
    """A trained matcher and the ranker below it."""

    recall: Recall
    ranker: Layer
    features: TextFeatures
    n_clusters: int
    """Clusters whose labels are ranked."""
    vector_weight: float
    """Length of the matcher's text vector beside TF-IDF in what the ranker reads; 0 leaves it out."""
    score: ScoreOptions
    shares: ClusterShares | None
    """None in models of earlier versions, which did not save it."""

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text, which is read once."""
        rows = texts.rows(self.features, run)
        recalled = self.recall.read(texts, rows, self.n_clusters, run, vectors=self.vector_weight > 0)
        joined = recalled.joined(rows, self.vector_weight)
        return rank(self.ranker, joined, recalled.clusters, recalled.log_scores, k, self.score, run=run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.recall.save(writer, name)
        writer.arrays(f"{name}-ranker", self.ranker.arrays())

    def describe(self) -> dict[str, Any]:
        """Return the facts of the matcher."""
        return self.recall.describe()

    def describe_clusters(self) -> list[dict[str, Any]]:
        """Return the number of the ranker's weights, and how clusters share the texts, where that is known."""
        return [{**self.shares.describe(), "n_weights": self.ranker.n_weights}] if self.shares else []
