"""From labels to their clusters, as a stage that is kept: label vectors, then a tree of them.

features (n_texts, n_features), split  ->  LabelIndex
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree
from longtail.labels.vectors import Sentences, VectorOptions, label_vectors
from longtail.run import Run
from longtail.sparse import sp


@dataclass(frozen=True)
class Sources:
    """What label vectors may be made from beside the features of texts."""

    names: Callable[[Sequence[str]], Rows | None] | None = None
    """Label names as features, for labels without texts."""
    sentences: Sentences | None = None
    """An encoder of names."""
    texts: Callable[[pa.Table], NDArray[np.float32]] | None = None
    """An encoder of texts."""


def cluster_labels(
    features: Rows, split: Split, vectors: VectorOptions, tree: TreeOptions, seed: int, run: Run, sources: Sources
) -> LabelIndex:
    """Group the labels of a split."""

    def grow() -> dict[str, Any]:
        points = points_of(features, split, vectors, seed, run, sources)
        return build_tree(points, tree, seed, None, run.engine, run.progress).arrays()

    return LabelIndex.from_arrays(dict(run.stages.arrays("tree", grow)[0]))


def points_of(
    features: Rows, split: Split, vectors: VectorOptions, seed: int, run: Run, sources: Sources
) -> sp.csr_matrix:
    """The vector of each label of a split; texts are encoded only where vectors need it."""
    embeddings = sources.texts(split.texts) if sources.texts and "embedding" in vectors.kinds else None
    given = split.labels, split.vocabulary, vectors, seed, sources.names, run.engine, run.progress
    return label_vectors(features, *given, sources.sentences, embeddings)
