"""A linear tree together with the features that it reads: the member of a linear ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.labels.clusters import ClusterShares
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
    shares: ClusterShares

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text."""
        return self.tree.predict(texts.rows(self.features, run), k, self.search, run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write the tree into a model folder."""
        self.tree.save(writer, name)

    def describe(self) -> dict[str, Any]:
        """Return the number of weights, and how clusters share the texts."""
        return {**self.shares.describe(), "n_weights": self.tree.n_weights}
