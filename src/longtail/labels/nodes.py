"""A LabelIndex as nodes in one numbering, and the nodes that a text is an example of.

    nodes: clusters of the first level, of the second, …, then the labels; the root comes last, as number n

A label's nodes are itself and all clusters above it. A text is an example of each child of the root and of each child
of its labels' clusters, a positive one of its labels' nodes. An only child is right wherever its parent is, so texts
are no examples of it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.labels.frequency import log_odds
from longtail.labels.index import LabelIndex
from longtail.types import LabelMatrix


class Pairs(NamedTuple):
    """Texts and the nodes that they are examples of."""

    texts: NDArray[np.int64]  # (n,) ascending
    nodes: NDArray[np.int64]  # (n,)
    right: NDArray[np.bool_]  # (n,) whether the node is a label of the text, or above one


class Nodes:
    """All nodes below a root."""

    def __init__(self, index: LabelIndex) -> None:
        sizes = [len(parents) for parents in index.parents]
        self.starts = np.cumsum([0, *sizes])  # (depth + 1,) first node of each level; the labels' is the last but one
        self.n, self.n_labels, self.depth = int(self.starts[-1]), sizes[-1], len(sizes)
        inner = [parents + start for parents, start in zip(index.parents[1:], self.starts, strict=False)]
        self.parent = np.concatenate([np.full(sizes[0], self.n), *inner])  # (n,)
        counts = np.bincount(self.parent, minlength=self.n + 1)
        self.only = counts[self.parent] == 1  # (n,) whether it is its parent's only child
        self.children = np.argsort(self.parent, kind="stable")  # (n,) by parent
        self.child_ptr = np.concatenate([[0], np.cumsum(counts)])  # (n + 2,)
        way = [np.arange(self.n - self.n_labels, self.n)]
        while len(way) < self.depth:
            way.append(self.parent[way[-1]])
        self.ways = np.stack(way, 1)  # (n_labels, depth) the nodes of each label, itself first

    def children_by_level(self) -> list[NDArray[np.int64]]:
        """Return the children of the root (1, s), of each first-level cluster (n_1, s), …, padded with n."""
        spans = [(self.n, self.n + 1), *pairwise(self.starts[:-1].tolist())]
        return [self._padded(self.child_ptr[start : stop + 1]) for start, stop in spans]

    def right(self, texts: NDArray[np.int64], labels: NDArray[Any]) -> NDArray[np.int64]:
        """Return a key text · (n + 1) + node for each node of the labels of each text, once, ascending."""
        return np.unique(texts[:, None] * (self.n + 1) + self.ways[labels])

    def pairs(self, texts: NDArray[np.int64], labels: NDArray[np.int64], n_texts: int) -> Pairs:
        """Return the examples that texts 0 to `n_texts` are; text `texts[i]` has label `labels[i]`."""
        width = self.n + 1
        right = self.right(texts, labels)
        clusters = right[right % width < self.n - self.n_labels]
        parents = np.sort(np.concatenate([clusters, np.arange(n_texts) * width + self.n]))
        owner, parent = np.divmod(parents, width)
        counts = self.child_ptr[parent + 1] - self.child_ptr[parent]
        ends = np.cumsum(counts)
        nodes = self.children[np.arange(ends[-1]) + np.repeat(self.child_ptr[parent] - ends + counts, counts)]
        informative = ~self.only[nodes]
        owner, nodes = np.repeat(owner, counts)[informative], nodes[informative]
        return Pairs(owner, nodes, np.isin(owner * width + nodes, right, assume_unique=True))

    def odds(self, labels: LabelMatrix) -> NDArray[np.float32]:
        """Return how often each node is right if its parent is, as log odds (n,)."""
        texts = np.repeat(np.arange(labels.n_texts), labels.labels_per_text())
        counts = np.bincount(self.right(texts, labels.indices) % (self.n + 1), minlength=self.n + 1)
        counts[self.n] = labels.n_texts
        return log_odds(counts[: self.n], counts[self.parent])

    def _padded(self, ptr: NDArray[np.int64]) -> NDArray[np.int64]:
        counts = np.diff(ptr)
        padded = np.full((len(counts), int(counts.max())), self.n)
        padded[np.arange(padded.shape[1]) < counts[:, None]] = self.children[ptr[0] : ptr[-1]]
        return padded
