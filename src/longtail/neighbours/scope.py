"""The label scope of a text: the labels of its nearest texts, and the parents of these labels.

    vocabulary, training labels                   ->  LabelParents: for each label its parents
    neighbours (n_texts, k), their labels, these  ->  Scope: for each text some labels, the likeliest first

A scope narrows thousands of labels down to those that a text may have (TReaderXML's teacher,
docs/methods/treaderxml.md#teacher). Its labels are those of the model, followed by parents that are no labels
themselves. Parents come from the vocabulary (`hierarchy.tsv`, SKOS); where that knows none, from the training texts: a
is above c where nearly all texts with c have a, and a has more texts (subsumption); of several, the one with the
fewest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, model_validator

from longtail.data.vocabulary import Vocabulary
from longtail.options import Ablation, Options
from longtail.sparse import sp
from longtail.structure import Structure
from longtail.types import LabelMatrix

_TEXTS_AT_ONCE = 1 << 14


class ScopeOptions(Options):
    """Which labels a scope has."""

    parents: Literal["auto", "vocabulary", "texts", "none"] = "auto"
    """Where parents come from: the vocabulary; the labels that training texts share; `auto` is the vocabulary where it
    knows any parent, else the texts. `none` leaves parents out."""
    min_share: float = Field(0.8, gt=0, le=1)
    """texts: the least share of a label's texts that must have another label for that to be its parent."""
    parentless: Ablation[Literal["keep", "drop"]] = "keep"
    """Whether labels of neighbours that have no parent are kept or left out."""
    max_labels: NonNegativeInt = 30
    """At most so many labels of neighbours a text, the likeliest, and the parents of these; 0 keeps all."""

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        if self.parentless == "drop" and self.parents == "none":
            raise ValueError("parentless must be 'keep' where parents are 'none', got 'drop': no label would be left")
        return self


@dataclass(frozen=True, eq=False)
class LabelParents:
    """The parents of each label."""

    parents: LabelMatrix  # (n_labels, n_scope_labels) numbers of parents; those from n_labels on are no labels
    names: tuple[str, ...]  # (n_scope_labels,)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store; names follow from the vocabulary."""
        return {"indptr": self.parents.indptr, "indices": self.parents.indices}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], vocabulary: Vocabulary) -> LabelParents:
        """Return the hierarchy of which `arrays` gave these."""
        _, names = _scope_labels(vocabulary)
        stored = Structure(arrays, "the hierarchy")
        parents = stored.numbers("indices", np.int32, below=len(names))
        return cls(LabelMatrix(stored.pointers("indptr", to=parents, n=len(vocabulary)), parents, len(names)), names)


@dataclass(frozen=True, eq=False)
class Scope:
    """Some labels for each text: first those of most and nearest neighbours, then those that are only parents."""

    ptr: NDArray[np.int64]  # (n_texts + 1,)
    labels: NDArray[np.int32]  # (n,)
    names: tuple[str, ...]  # (n_scope_labels,)
    votes: Any | None = None  # (n_texts, n_labels) sparse float32: what neighbours add to the logits of labels

    def __len__(self) -> int:
        return len(self.ptr) - 1

    def __getitem__(self, text: int) -> NDArray[np.int32]:
        return self.labels[self.ptr[text] : self.ptr[text + 1]]

    @classmethod
    def stack(cls, scopes: Sequence[Scope]) -> Scope:
        """Return the scopes of some texts after those of others, over the same labels."""
        lengths = np.concatenate([[0], *(np.diff(scope.ptr) for scope in scopes)])
        votes = None if scopes[0].votes is None else sp.vstack([scope.votes for scope in scopes], "csr")
        return cls(np.cumsum(lengths), np.concatenate([scope.labels for scope in scopes]), scopes[0].names, votes)


def parents_of(vocabulary: Vocabulary, labels: LabelMatrix, options: ScopeOptions) -> LabelParents:
    """Return the parents of all labels of a vocabulary; `labels` are those of training texts."""
    position, names = _scope_labels(vocabulary)
    stated = vocabulary.table["parents"].to_pylist()
    kind = options.parents
    if kind == "auto":
        kind = "vocabulary" if any(stated) else "texts"
    n_labels = len(vocabulary)
    if kind == "vocabulary":
        rows = ([position[parent] for parent in ids if position[parent] != at] for at, ids in enumerate(stated))
        return LabelParents(LabelMatrix.from_lists(rows, len(names)), names)
    parent = subsuming(labels, options.min_share) if kind == "texts" else np.full(n_labels, -1)
    child = np.flatnonzero(parent >= 0)
    return LabelParents(LabelMatrix.from_pairs(child, parent[child], n_labels, len(names)), names)


def subsuming(labels: LabelMatrix, min_share: float) -> NDArray[np.int64]:
    """Return the least frequent label above each label, by the texts that have both; −1 if there is none.

    Label a is above c if P(a | c) ≥ `min_share` and a has more texts than c; ties by number
    (docs/methods/treaderxml.md#parents-from-texts).
    """
    of_texts = labels.to_scipy().astype(np.int64)
    together = (of_texts.T @ of_texts).tocoo()  # (n_labels, n_labels) texts that have both
    counts = labels.texts_per_label()
    child, parent = together.row, together.col
    above = (counts[parent] > counts[child]) & (together.data / counts[child] >= min_share)
    child, parent = child[above], parent[above]
    order = np.lexsort((parent, counts[parent], child))
    child, parent = child[order], parent[order]
    first = np.flatnonzero(np.diff(child, prepend=-1))
    parents = np.full(labels.n_labels, -1, np.int64)
    parents[child[first]] = parent[first]
    return parents


def scope_of(
    neighbours: NDArray[Any],
    labels: LabelMatrix,
    hierarchy: LabelParents,
    options: ScopeOptions | None = None,
    *,
    at_once: int = _TEXTS_AT_ONCE,
) -> Scope:
    """Return the scope of each text by its nearest texts (n_texts, k), best first, −1 where there are fewer.

    `labels` are those of the pool. The scopes of `at_once` texts are computed at a time.
    """
    options = options or ScopeOptions(max_labels=0)
    dropped, most = options.parentless == "drop", options.max_labels
    starts = range(0, max(len(neighbours), 1), at_once)
    return Scope.stack(
        [_scopes(neighbours[start : start + at_once], labels, hierarchy, dropped, most) for start in starts]
    )


def _scopes(neighbours: NDArray[Any], labels: LabelMatrix, hierarchy: LabelParents, dropped: bool, most: int) -> Scope:
    """Return the scopes of some texts, with at most `most` labels of neighbours each."""
    parents, (n_texts, k) = hierarchy.parents, neighbours.shape
    text, rank = np.nonzero(neighbours >= 0)
    text, rank, label = _spread(text, rank, labels, neighbours[text, rank])
    if dropped:
        kept = parents.labels_per_text()[label] > 0
        text, rank, label = text[kept], rank[kept], label[kept]
    # One vote per neighbour. Nearer ones count a little more, together less than one vote.
    vote = 1 + (k - rank) / (k * (k + 1))
    if most:
        kept = _likeliest(text, label, vote, parents.n_labels, most)
        text, label, vote = text[kept], label[kept], vote[kept]
    above = _spread(text, np.arange(len(text)), parents, label)
    is_direct = np.arange(len(text) + len(above[0])) < len(text)
    text, label = np.concatenate([text, above[0]]), np.concatenate([label, above[2]])
    vote = np.concatenate([vote, vote[above[1]]])
    keys, place = np.unique(text.astype(np.int64) * parents.n_labels + label, return_inverse=True)
    direct, inherited = (np.bincount(place, vote * side, len(keys)) for side in (is_direct, ~is_direct))
    text, label = np.divmod(keys, max(parents.n_labels, 1))
    order = np.lexsort((label, -inherited, -direct, text))
    lengths = np.bincount(text, minlength=n_texts)
    return Scope(np.concatenate([[0], np.cumsum(lengths)]), label[order].astype(np.int32), hierarchy.names)


def _likeliest(
    text: NDArray[Any], label: NDArray[Any], vote: NDArray[Any], n_labels: int, most: int
) -> NDArray[np.bool_]:
    """Return which votes are for one of the `most` labels of a text with the most votes."""
    keys, place = np.unique(text.astype(np.int64) * n_labels + label, return_inverse=True)
    owner = keys // max(n_labels, 1)
    order = np.lexsort((keys, -np.bincount(place, vote, len(keys)), owner))
    first = np.searchsorted(owner, owner)  # keys are in the order of texts
    kept = np.zeros(len(keys), bool)
    kept[order] = np.arange(len(keys)) - first < most
    return kept[place]


def _spread(
    text: NDArray[Any], rank: NDArray[Any], of: LabelMatrix, rows: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return text, rank and label for each label of the given rows of a matrix, one row for each text and rank."""
    taken = of.take(rows)
    lengths = taken.labels_per_text()
    return np.repeat(text, lengths), np.repeat(rank, lengths), taken.indices


def _scope_labels(vocabulary: Vocabulary) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the number of each label and parent by id, and their names: first labels, then other parents by id."""
    stated = vocabulary.table["parents"].to_pylist()
    outside = sorted({parent for ids in stated for parent in ids if parent not in vocabulary.position})
    position = {label: at for at, label in enumerate((*vocabulary.ids, *outside))}
    return position, (*vocabulary.names, *map(vocabulary.name_of, outside))
