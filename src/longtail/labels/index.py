"""Labels ↔ clusters, level by level: what recall walks down and ranking looks up.

    parents[0]   (n_1,)       the one root of every cluster of the first level
    parents[t]   (n_t+1,)     cluster of level t above each cluster of level t + 1
    parents[-1]  (n_labels,)  last-level cluster of each label

Each label has exactly one cluster. Clusters are numbered so that the children of a cluster are
neighbours; a flat index has one level, all labels under the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.mapped_arrays import Arrays
from longtail.structure import Structure
from longtail.types import LabelMatrix


@dataclass(frozen=True, eq=False)
class Level:
    """One step down: the children of each parent."""

    child_ptr: NDArray[np.int64]  # (n_parents + 1,)
    children: NDArray[np.int32]  # (n_children,) grouped by parent

    @property
    def n_parents(self) -> int:
        """Clusters above."""
        return len(self.child_ptr) - 1

    @property
    def n_children(self) -> int:
        """Clusters or labels below."""
        return len(self.children)

    def parent_of_child(self) -> NDArray[np.int64]:
        """Return the parent of each child, (n_children,)."""
        parents = np.empty(self.n_children, np.int64)
        parents[self.children] = np.repeat(np.arange(self.n_parents), np.diff(self.child_ptr))
        return parents


@dataclass(frozen=True, eq=False)
class LabelIndex:
    """Parent pointers from the first clusters down to the labels."""

    parents: tuple[NDArray[np.int32], ...]

    @classmethod
    def flat(cls, n_labels: int) -> LabelIndex:
        """Return an index with all labels under the root."""
        return cls((np.zeros(n_labels, np.int32),))

    @property
    def n_labels(self) -> int:
        """Labels below the last level."""
        return len(self.parents[-1])

    @property
    def n_clusters(self) -> int:
        """Clusters of the last level above the labels."""
        return len(self.parents[-2]) if len(self.parents) > 1 else 1

    def below(self, n_clusters: int) -> LabelIndex:
        """Return the index without the first levels that have fewer than `n_clusters` clusters; labels stay."""
        kept = [level for level in self.parents[:-1] if len(level) >= n_clusters]
        first, *others = *kept, self.parents[-1]
        return LabelIndex((np.zeros(len(first), np.int32), *others))

    def levels(self) -> list[Level]:
        """Return the steps from the root to the labels."""
        sizes = [1, *(len(p) for p in self.parents)]
        return [_level(parent, n) for parent, n in zip(self.parents, sizes[:-1], strict=True)]

    def targets(self, labels: LabelMatrix) -> Iterator[LabelMatrix]:
        """Yield the clusters of each text, level by level, and last its labels."""
        for level, clusters in enumerate(self.parents[:-1]):
            yield labels.renumber(self._cluster_of(level), len(clusters))
        yield labels

    def counts(self, labels: LabelMatrix, level: int) -> NDArray[np.int64]:
        """Return how many labels each text has in each of its clusters of a level, in the order of `targets`."""
        texts = np.repeat(np.arange(labels.n_texts), labels.labels_per_text())
        keys = texts * len(self.parents[level]) + self._cluster_of(level)[labels.indices]
        counts: NDArray[np.int64] = np.unique(keys, return_counts=True)[1]
        return counts

    def _cluster_of(self, level: int) -> NDArray[Any]:
        """Return the cluster of a level that each label lies in."""
        clusters: NDArray[Any] = np.arange(self.n_labels)
        for parent in reversed(self.parents[level + 1 :]):
            clusters = parent[clusters]
        return clusters

    def sizes(self) -> NDArray[np.int64]:
        """Return the number of labels of each last-level cluster."""
        return np.bincount(self.parents[-1], minlength=self.n_clusters)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        return {f"parents_{t}": parent for t, parent in enumerate(self.parents)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, n_labels: int | None = None) -> LabelIndex:
        """Return the index of which `arrays` gave these, of so many labels if given."""
        stored, parents, n_above = Structure(arrays, "the label index"), [], 1
        for t in range(len(arrays)):
            n = n_labels if t == len(arrays) - 1 else None
            parents.append(stored.numbers(f"parents_{t}", np.int32, below=n_above, n=n))
            n_above = len(parents[-1])
        return cls(tuple(parents))


def index_of_groups(levels: Sequence[Sequence[NDArray[Any]]], n_labels: int) -> LabelIndex:
    """Return the index of label groups, from coarse to fine levels; a group lies in one of the level above."""
    parents: list[NDArray[np.int32]] = []
    above = np.zeros(n_labels, np.int32)  # (n_labels,) group of each label one level up
    for groups in levels:
        parents.append(np.array([above[group[0]] for group in groups], np.int32))
        above = np.empty(n_labels, np.int32)
        for number, group in enumerate(groups):
            above[group] = number
    return LabelIndex((*parents, above))


def _level(parent: NDArray[np.int32], n_parents: int) -> Level:
    child_ptr = np.zeros(n_parents + 1, np.int64)
    np.cumsum(np.bincount(parent, minlength=n_parents), out=child_ptr[1:])
    return Level(child_ptr, np.argsort(parent, kind="stable").astype(np.int32))
