"""From labels to their clusters, as a stage that is kept: label vectors, then a tree of them.

LabelInputs: features (n_texts, n_features), split  ->  LabelIndex
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree
from longtail.labels.vectors import LabelInputs as LabelInputs
from longtail.labels.vectors import Sources as Sources
from longtail.labels.vectors import VectorOptions, label_vectors
from longtail.persist import Folder
from longtail.structure import Structure
from longtail.types import LabelMatrix


@dataclass(frozen=True, eq=False)
class ClusterShares:
    """How the clusters of a member share the training texts (X-BERT's figure 1)."""

    vectors: VectorOptions
    """What labels are clustered by."""
    seed: int
    texts_per_cluster: NDArray[np.int64]  # (n_clusters,)

    @classmethod
    def of(cls, labels: LabelMatrix, index: LabelIndex, vectors: VectorOptions, seed: int) -> Self:
        """Count the texts of the last level of clusters."""
        return cls(vectors, seed, labels.renumber(index.parents[-1], index.n_clusters).texts_per_label())

    @classmethod
    def load(cls, folder: Folder, name: str, vectors: VectorOptions, seed: int, *, n_clusters: int) -> Self:
        """Open the texts per cluster that a model folder has of a member."""
        stored = Structure(folder.arrays("clusters"), f"{folder.path}, clusters")
        return cls(vectors, seed, stored.array(name, np.int64, shape=(n_clusters,)))

    def describe(self) -> dict[str, Any]:
        """Return label vectors, seed and texts per cluster, for `longtail info`."""
        kinds = "+".join(self.vectors.kinds)
        return {"vectors": kinds, "seed": self.seed, "texts_per_cluster": self.texts_per_cluster}


def cluster_labels(inputs: LabelInputs, vectors: VectorOptions, tree: TreeOptions) -> LabelIndex:
    """Return a tree of the labels of a split, clustered by their vectors."""
    options = tree.model_copy(update={"geometry": vectors.geometry or tree.geometry})

    def grow() -> dict[str, Any]:
        return build_tree(label_vectors(inputs, vectors), options, seed=inputs.seed, run=inputs.run).arrays()

    return LabelIndex.from_arrays(inputs.run.stages.arrays("tree", grow)[0])
