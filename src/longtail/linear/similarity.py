"""A ranker without training: a label's margin is the cosine of its vector and the text.

    label vectors (n_labels, n_features), index  ->  Layer

What X-BERT's ablation without a ranker does (docs/methods/xbert.md#similarity-instead-of-a-ranker). The vectors take
the place of weights, so `ranker.rank` ranks with them like with any others, block by block; `order="margin"` leaves the
matcher's scores out. Vectors are rounded to 16 bits, which moves a cosine by less than 1e-4 on texts of unit length.
"""

from __future__ import annotations

import numpy as np

from longtail.errors import DataError
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.linear.chunks import ChildWeights, check_widths, chunk_of, layer_of
from longtail.linear.growing import GrowingArrays
from longtail.linear.layer import Layer
from longtail.run.run import Run
from longtail.sparse import sp


def similarity_ranker(vectors: sp.csr_matrix, index: LabelIndex, run: Run | None = None) -> Layer:
    """Return a ranker of the labels of `index` by the cosine of their vectors (`labels.vectors`), of any length.

    `vectors` must have the columns that texts have: PIFA, or names as TF-IDF. A label whose vector is empty has a
    cosine of 0 with every text.
    """
    if vectors.shape[0] != index.n_labels:
        raise DataError(f"there must be a vector for each of {index.n_labels:,} labels, got {vectors.shape[0]:,}")
    level = index.levels()[-1]
    check_widths(level)
    rows = Rows.of(sp.csr_matrix(vectors)[level.children])  # labels of a cluster are neighbours
    whole = GrowingArrays()
    with (run or Run()).progress.step("label similarity", level.n_children, "labels") as advance:
        for cluster in range(level.n_parents):
            start, stop = int(level.child_ptr[cluster]), int(level.child_ptr[cluster + 1])
            whole.append(chunk_of(_weights_of(rows.part(start, stop))), (cluster + 1) / level.n_parents)
            advance(stop - start)
    return layer_of(level, whole.arrays())


def _weights_of(rows: Rows) -> ChildWeights:
    """Return the vectors of a cluster's labels at unit length, by feature."""
    child = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    lengths = np.sqrt(np.bincount(child, rows.values.astype(np.float64) ** 2, len(rows)))
    order = np.argsort(rows.indices, kind="stable")
    order = order[rows.values[order] != 0]
    child = child[order]
    return ChildWeights(
        feature=rows.indices[order],
        child=child.astype(np.uint16),
        weight=(rows.values[order] / lengths[child]).astype(np.float32),
        bias=np.zeros(len(rows), np.float32),
    )
