"""What packages exchange: `LabelMatrix` (the labels that texts have) and `TopK` (the labels that a model suggests).

LabelMatrix  n_texts rows of sorted label numbers, as CSR without values
TopK         labels (n_texts, k) int32 and scores (n_texts, k) float32, best first
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import scipy.sparse as sp

NO_LABEL = -1
"""Marks an empty place of a TopK row that has fewer than k labels; the score there is -inf."""


@dataclass(frozen=True, eq=False)
class LabelMatrix:
    """Sorted, distinct label numbers of each text."""

    indptr: NDArray[np.int64]  # (n_texts + 1,)
    indices: NDArray[np.int32]  # (n_assignments,)
    n_labels: int

    @classmethod
    def from_lists(cls, rows: Iterable[Iterable[int]], n_labels: int) -> LabelMatrix:
        """Build from the label numbers of each text; a number repeated in a row is kept once."""
        sets = [sorted(set(row)) for row in rows]
        lengths = np.fromiter((len(row) for row in sets), np.int64, len(sets))
        flat = np.fromiter((label for row in sets for label in row), np.int32, int(lengths.sum()))
        return cls(_indptr(lengths), flat, n_labels)

    @classmethod
    def from_pairs(cls, texts: NDArray[Any], labels: NDArray[Any], n_texts: int, n_labels: int) -> LabelMatrix:
        """Build from (text, label) pairs in any order; repeated pairs are kept once."""
        keys = np.asarray(texts).astype(np.int64)
        keys *= max(n_labels, 1)
        keys += np.asarray(labels, np.int64)
        keys.sort()
        repeated = np.flatnonzero(keys[1:] == keys[:-1])
        keys = np.delete(keys, repeated) if len(repeated) else keys
        indptr = _indptr(np.bincount(keys // max(n_labels, 1), minlength=n_texts))
        keys %= max(n_labels, 1)  # in place: there may be many millions
        return cls(indptr, keys.astype(np.int32), n_labels)

    @property
    def n_texts(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    def __len__(self) -> int:
        return self.n_texts

    def __getitem__(self, text: int) -> NDArray[np.int32]:
        return self.indices[self.indptr[text] : self.indptr[text + 1]]

    def labels_per_text(self) -> NDArray[np.int64]:
        """Return the number of labels of each text: (n_texts,)."""
        return np.diff(self.indptr)

    def texts_per_label(self) -> NDArray[np.int64]:
        """Return the number of texts of each label: (n_labels,)."""
        return np.bincount(self.indices, minlength=self.n_labels)

    def n_seen(self) -> int:
        """Return the number of labels that have a text."""
        return int(np.count_nonzero(self.texts_per_label()))

    def take(self, rows: NDArray[Any]) -> LabelMatrix:
        """Return the given rows (numbers, or a mask), in the given order."""
        rows = np.arange(self.n_texts)[rows]
        lengths = np.diff(self.indptr)[rows]
        indptr = _indptr(lengths)
        inside = np.arange(indptr[-1]) - np.repeat(indptr[:-1], lengths)
        return LabelMatrix(indptr, self.indices[np.repeat(self.indptr[rows], lengths) + inside], self.n_labels)

    def renumber(self, new_id: NDArray[Any], n_labels: int) -> LabelMatrix:
        """Return label l as `new_id[l]`; labels with a negative number are dropped, those that become one kept once."""
        moved = np.asarray(new_id, np.int32)[self.indices]
        texts = np.repeat(np.arange(self.n_texts, dtype=np.int32), np.diff(self.indptr))
        if len(moved) and moved.min() < 0:
            keep = moved >= 0
            texts, moved = texts[keep], moved[keep]
        return LabelMatrix.from_pairs(texts, moved, self.n_texts, n_labels)

    def transpose(self) -> LabelMatrix:
        """Return the sorted text numbers of each label."""
        texts = np.repeat(np.arange(self.n_texts, dtype=np.int32), np.diff(self.indptr))
        order = np.argsort(self.indices, kind="stable")
        return LabelMatrix(_indptr(self.texts_per_label()), texts[order], self.n_texts)

    def to_scipy(self) -> sp.csr_matrix:
        """Return a 0/1 matrix (n_texts, n_labels) float32."""
        import scipy.sparse as sp

        ones = np.ones(len(self.indices), np.float32)
        return sp.csr_matrix((ones, self.indices, self.indptr), shape=(self.n_texts, self.n_labels))


@dataclass(frozen=True, eq=False)
class TopK:
    """The best k labels of each text, best first, ties usually by label number; never a label twice in a row."""

    labels: NDArray[np.int32]  # (n_texts, k), NO_LABEL where a row is short
    scores: NDArray[np.float32]  # (n_texts, k), -inf where a row is short

    @property
    def n_texts(self) -> int:
        """Number of rows."""
        return int(self.labels.shape[0])

    @property
    def k(self) -> int:
        """Labels per row."""
        return int(self.labels.shape[1])

    def __len__(self) -> int:
        return self.n_texts

    def first(self, k: int) -> TopK:
        """Return the first k columns."""
        return TopK(self.labels[:, :k], self.scores[:, :k])

    @classmethod
    def empty(cls, n_texts: int, k: int) -> TopK:
        """Return lists without any label, to be filled."""
        return cls(np.full((n_texts, k), NO_LABEL, np.int32), np.full((n_texts, k), -np.inf, np.float32))

    @classmethod
    def stack(cls, blocks: Sequence[TopK]) -> TopK:
        """Return the rows of several results of the same k, one below the other."""
        return cls(np.concatenate([b.labels for b in blocks]), np.concatenate([b.scores for b in blocks]))


def _indptr(lengths: NDArray[Any]) -> NDArray[np.int64]:
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr
