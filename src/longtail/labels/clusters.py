"""From labels to their clusters, as a stage that is kept: label vectors, then a tree of them.

features (n_texts, n_features), split  ->  LabelIndex
"""

from __future__ import annotations

from typing import Any

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree
from longtail.labels.vectors import Sources as Sources
from longtail.labels.vectors import VectorOptions, label_vectors
from longtail.run.run import Run


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
