"""From labels to their clusters, as a stage that is kept: label vectors, then a tree of them.

features (n_texts, n_features), split  ->  LabelIndex
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree
from longtail.labels.vectors import Sources as Sources
from longtail.labels.vectors import VectorOptions, label_vectors
from longtail.run.run import Run
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

    def describe(self) -> dict[str, Any]:
        """Return label vectors, seed and texts per cluster, for `longtail info`."""
        kinds = "+".join(self.vectors.kinds)
        return {"vectors": kinds, "seed": self.seed, "texts_per_cluster": self.texts_per_cluster}


def cluster_labels(
    features: Rows,
    split: Split,
    vectors: VectorOptions,
    tree: TreeOptions,
    *,
    seed: int = 0,
    run: Run | None = None,
    sources: Sources = Sources(),  # noqa: B008, which never changes
) -> LabelIndex:
    """Return a tree of the labels of a split, clustered by their vectors; `features` are those of its texts."""
    run = run or Run()
    geometry = vectors.geometry or tree.geometry

    def grow() -> dict[str, Any]:
        points = label_vectors(features, split, vectors, seed=seed, run=run, sources=sources)
        return build_tree(points, tree.model_copy(update={"geometry": geometry}), seed=seed, run=run).arrays()

    return LabelIndex.from_arrays(dict(run.stages.arrays("tree", grow)[0]))
