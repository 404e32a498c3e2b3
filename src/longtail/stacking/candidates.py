"""The labels that at least one member proposes for a text.

members [TopK (n_texts, length), ...]  ->  Candidates: (text, label) pairs, sorted, each once
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from longtail.topk import top_k_of_rows
from longtail.types import NO_LABEL, LabelMatrix, TopK


@dataclass(frozen=True, eq=False)
class Candidates:
    """Sorted pairs of text and label."""

    keys: NDArray[np.int64]  # (n_candidates,) text * n_labels + label, ascending
    n_texts: int
    n_labels: int

    @classmethod
    def of(cls, lists: Sequence[TopK], n_labels: int) -> Candidates:
        """Return the union of the members' lists, which are about the same texts."""
        keys = [keys_of(one, n_labels)[0] for one in lists]
        return cls(np.unique(np.concatenate(keys)), len(lists[0]), n_labels)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def texts(self) -> NDArray[np.int64]:
        """The text of each candidate, ascending."""
        return self.keys // self.n_labels

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """The label of each candidate."""
        return self.keys - self.texts * self.n_labels

    @cached_property
    def indptr(self) -> NDArray[np.int64]:
        """Where the candidates of each text begin, (n_texts + 1,)."""
        return np.searchsorted(self.texts, np.arange(self.n_texts + 1))

    def find(self, keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the place of each key among the candidates, and whether it is one."""
        places = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        return places, self.keys[places] == keys if len(self.keys) else np.zeros(len(keys), bool)

    def are_labels_of(self, labels: LabelMatrix) -> NDArray[np.bool_]:
        """Return which candidates are labels of their texts."""
        assigned = np.repeat(np.arange(labels.n_texts), labels.labels_per_text()) * self.n_labels + labels.indices
        return np.isin(self.keys, assigned, assume_unique=True)

    def top_k(self, scores: NDArray[np.float32], k: int) -> TopK:
        """Return the best k candidates of each text."""
        return top_k_of_rows(self.indptr, self.labels, scores, k)


def keys_of(lists: TopK, n_labels: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return text * n_labels + label of all filled places, row by row, and which places (n_texts, k) are filled."""
    filled = lists.labels != NO_LABEL
    keys = np.arange(len(lists), dtype=np.int64)[:, None] * n_labels + lists.labels
    return keys[filled], filled
