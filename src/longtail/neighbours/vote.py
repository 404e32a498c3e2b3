"""Labels by the votes of neighbours.

Neighbours (n, k), labels of the pool  ->  TopK (n, k_labels)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.neighbours.base import Neighbours
from longtail.sparse import sp
from longtail.topk import top_k_of_rows
from longtail.types import LabelMatrix, TopK


def vote(neighbours: Neighbours, labels: LabelMatrix, power: float, k: int) -> TopK:
    """Return the best k labels of each text; a label without votes is not in the list."""
    votes = votes_of(neighbours, labels, power)
    return top_k_of_rows(votes.indptr, votes.indices, votes.data, k)


def votes_of(neighbours: Neighbours, labels: LabelMatrix, power: float) -> Any:
    """Return each label's share of the votes, sparse (n_texts, n_labels); a neighbour's vote weighs cosine^power.

    Neighbours of cosine 0 and below do not vote.
    """
    near = neighbours.cosines > 0  # (n, n_neighbours)
    weights = np.where(near, neighbours.cosines, 0).astype(np.float64) ** power * near
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    ptr = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
    shape = len(near), labels.n_texts
    votes = sp.csr_matrix((weights[near].astype(np.float32), neighbours.texts[near], ptr), shape) @ labels.to_scipy()
    votes.data = np.minimum(votes.data, 1)  # rounding may give more
    return votes
