"""A linear tree that reads TF-IDF and the text vector of a fine-tuned encoder side by side.

texts  ->  TF-IDF rows (n, n_features), text vectors (n, d)  ->  joined rows (n, n_features + d)  ->  TopK (n, k)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.linear.tree import BeamOptions, LinearTree
from longtail.nn.heads.base import NoHead
from longtail.nn.tagger import Tagger
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.joined import with_embeddings
from longtail.text.readings import TextReadings
from longtail.types import TopK


@dataclass(frozen=True, eq=False)
class VectorTree:
    """A trained tree, and what makes its features."""

    encoder: Tagger
    """A network without labels."""
    tree: LinearTree
    features: TextFeatures
    vector_weight: float
    """Length of the text vector beside TF-IDF."""
    search: BeamOptions

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text, which is encoded once."""
        rows, vectors = texts.rows(self.features, run), self.encoder.vectors(texts, run)
        return self.tree.predict(with_embeddings(rows, vectors, self.vector_weight), k, self.search, run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write encoder and tree into a model folder."""
        self.encoder.save(writer, name)
        self.tree.save(writer, name)

    @classmethod
    def load(
        cls, folder: Folder, name: str, *, features: TextFeatures, vector_weight: float, search: BeamOptions
    ) -> VectorTree:
        """Open what `save` wrote."""
        encoder = Tagger.load(folder, name, lambda width: NoHead())
        return cls(encoder, LinearTree.load(folder, name), features, vector_weight, search)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the encoder and of its training, and the number of the tree's weights."""
        return {**self.encoder.describe(), "n_weights": self.tree.n_weights}
