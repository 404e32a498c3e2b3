"""Neighbours vote for their labels.

Neighbours (n, k), labels of the pool  ->  TopK (n, k_labels)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.neighbours.base import Neighbours
from longtail.sparse import sp
from longtail.topk import top_k_of_rows
from longtail.types import LabelMatrix, TopK


def vote(found: Neighbours, labels: LabelMatrix, power: float, k: int) -> TopK:
    """The best k labels of each text; a label without votes is not in the list."""
    votes = votes_of(found, labels, power)
    return top_k_of_rows(votes.indptr, votes.indices, votes.data, k)


def votes_of(found: Neighbours, labels: LabelMatrix, power: float) -> Any:
    """Share of all votes (n_texts, n_labels), sparse: a neighbour's vote for each of its labels weighs cosine^power.

    Neighbours of cosine 0 and below do not vote.
    """
    near = found.cosines > 0  # (n, n_neighbours)
    weights = np.where(near, found.cosines, 0).astype(np.float64) ** power * near
    weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    ptr = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
    shape = len(near), labels.n_texts
    votes = sp.csr_matrix((weights[near].astype(np.float32), found.texts[near], ptr), shape) @ labels.to_scipy()
    votes.data = np.minimum(votes.data, 1)  # it may be more, of rounding
    return votes
