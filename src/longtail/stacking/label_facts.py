"""What training data say of labels, apart from any text: how frequent they are, what they occur with, what is above.

counts     (n_labels,) training texts of each label
together   P(label | other label), for the labels that occur with another most often
broader    the parents of each label; a parent that is no label has a number behind those of all labels
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.persist import Folder, FolderWriter
from longtail.sparse import sp
from longtail.structure import Structure
from longtail.types import LabelMatrix

_MOST_PARTNERS = 32
"""Labels that are kept for each label, those that it occurs with most often."""
_SMOOTHING = 2.0
"""Added to the frequency of a label in P(label | other): what was seen once or twice proves little."""
_PAIRS_AT_ONCE = 1 << 26


@dataclass(frozen=True, eq=False)
class LabelFacts:
    """Facts of labels, from some texts."""

    counts: NDArray[np.float32]  # (n_labels,)
    n_texts: int
    pairs: NDArray[np.int64]  # (n_pairs,) given label * n_labels + label, ascending
    shares: NDArray[np.float32]  # (n_pairs,) P(label | given label)

    @classmethod
    def of(cls, labels: LabelMatrix) -> LabelFacts:
        """Count the labels of texts."""
        counts = labels.texts_per_label().astype(np.float32)
        by_text = labels.to_scipy()
        by_label = by_text.T.tocsr()
        # How many pairs each label takes part in bounds the products of a block of labels.
        n_pairs = np.cumsum(by_label @ labels.labels_per_text().astype(np.float64))
        ends = np.searchsorted(n_pairs, np.arange(_PAIRS_AT_ONCE, n_pairs[-1] + _PAIRS_AT_ONCE, _PAIRS_AT_ONCE))
        bounds = np.unique(np.concatenate([[0], ends, [labels.n_labels]]))
        blocks = [_partners(by_label[start:stop] @ by_text, start) for start, stop in pairwise(bounds.tolist())]
        given, label, together = (np.concatenate(column) for column in zip(*blocks, strict=True))
        keys = given.astype(np.int64) * labels.n_labels + label
        order = np.argsort(keys)
        return cls(
            counts, labels.n_texts, keys[order], (together / (counts[given] + _SMOOTHING)).astype(np.float32)[order]
        )

    def log_frequency(self, labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the log of the share of texts that have each label; it does not grow with the number of texts."""
        return np.asarray(np.log((self.counts[labels] + 1) / self.n_texts), np.float32)

    def share(self, given: NDArray[np.int64], labels: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return P(label | given label) of each pair; 0 where they do not occur together, or a label is NO_LABEL."""
        if not len(self.pairs):
            return np.zeros(len(labels), np.float32)
        keys = given * len(self.counts) + labels
        places = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
        known = (self.pairs[places] == keys) & (given >= 0)
        return np.where(known, self.shares[places], np.float32(0))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.arrays(name, {"counts": self.counts, "pairs": self.pairs, "shares": self.shares})
        writer.manifest[name] = self.n_texts

    @classmethod
    def load(cls, folder: Folder, name: str, n_labels: int) -> LabelFacts:
        """Open what `save` wrote."""
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        pairs = stored.numbers("pairs", np.int64, below=n_labels * n_labels)
        stored.require("pairs", bool((pairs[1:] > pairs[:-1]).all()), "rise")
        shares = stored.finite("shares", np.float32, shape=(len(pairs),))
        counts, n_texts = stored.finite("counts", np.float32, shape=(n_labels,)), int(folder.manifest[name])
        stored.require("counts", n_texts > 0 and bool((counts >= 0).all()), "be those of some texts")
        return cls(counts, n_texts, pairs, shares)


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The parents of each label."""

    indptr: NDArray[np.int64]  # (n_labels + 1,)
    parents: NDArray[np.int64]  # numbers of labels; of parents that are none, numbers from n_labels on

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> Hierarchy | None:
        """Return the hierarchy of a vocabulary, or None if it has none."""
        groups: list[list[str]] = vocabulary.table["parents"].to_pylist()
        indptr = np.concatenate([[0], np.cumsum([len(group) for group in groups])]).astype(np.int64)
        if not indptr[-1]:
            return None
        others = {parent: len(vocabulary) + number for number, parent in enumerate(vocabulary.parent_names)}
        numbers = {**others, **vocabulary.position}
        return cls(indptr, np.array([numbers[parent] for group in groups for parent in group], np.int64))

    @property
    def n_numbers(self) -> int:
        """One more than the largest number of a label or parent."""
        return max(len(self.indptr) - 1, int(self.parents.max(initial=-1)) + 1)

    def above(self, labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a place in `labels` and a parent of the label there."""
        starts, lengths = self.indptr[labels], np.diff(self.indptr)[labels]
        child = np.repeat(np.arange(len(labels)), lengths)
        first = np.cumsum(lengths) - lengths
        return child, self.parents[np.arange(len(child)) + np.repeat(starts - first, lengths)]


def _partners(together: sp.csr_matrix, start: int) -> tuple[NDArray[np.int64], ...]:
    """Return the most frequent partners of a block of labels: given label, label, texts that have both."""
    pairs = together.tocoo()
    given, label, count = pairs.row.astype(np.int64), pairs.col.astype(np.int64), pairs.data
    others = given + start != label
    given, label, count = given[others], label[others], count[others]
    order = np.lexsort((label, -count, given))
    given, label, count = given[order], label[order], count[order]
    first = np.searchsorted(given, given)
    kept = np.arange(len(given)) - first < _MOST_PARTNERS
    return given[kept] + start, label[kept], count[kept]
