"""What each word adds to the margins of a label's classifiers: the exact terms of a linear score.

    tree, TF-IDF row of a text, label  ->  margins from the root to the label; per level, bias + words = margin

A label's order in a list follows from its ranker's margin and, less so, from the margins of the clusters above it. So
the weight of a word is what it adds to the margin of the label, and `cluster_weight` times what it adds to those above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from longtail.explain.attribution import Attribution
from longtail.explain.explanation import LevelMargin
from longtail.explain.terms import TermShares
from longtail.explain.words import TextWords
from longtail.kernels.rows import Rows
from longtail.linear.layer import Layer
from longtail.linear.tree import LinearTree


@dataclass(frozen=True, eq=False)
class MarginTerms:
    """A classifier's margin for one text, taken apart."""

    bias: float
    terms: NDArray[np.float64]  # (n_features of the text,)

    @property
    def margin(self) -> float:
        """The sum of all terms and the bias."""
        return self.bias + float(self.terms.sum())


def margin_terms(layer: Layer, row: Rows, child: int) -> tuple[int, MarginTerms]:
    """Return the cluster above a child, and the terms of the child's margin for the one text of `row`."""
    place = int(np.flatnonzero(layer.children == child)[0])
    cluster = int(np.searchsorted(layer.child_ptr, place, "right")) - 1
    first, last = layer.row_ptr[cluster : cluster + 2].tolist()
    features = layer.row_feature[first:last]
    at = np.searchsorted(features, row.indices)
    known = np.flatnonzero(np.append(features, -1)[at] == row.indices)  # of the text's features, those of the cluster
    rows = first + at[known] + cluster  # in `row_entry`, where each cluster has one end more
    base = int(layer.entry_base[cluster])
    starts = base + layer.row_entry[rows].astype(np.int64)
    lengths = base + layer.row_entry[rows + 1].astype(np.int64) - starts
    owner = np.repeat(np.arange(len(known)), lengths)
    entries = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    mine = layer.entry_child[entries] == place - int(layer.child_ptr[cluster])
    terms = np.zeros(len(row.indices))
    weights = layer.entry_value[entries[mine]] * np.float64(layer.scale[place])
    chosen = known[owner[mine]]
    terms[chosen] = weights * row.values[chosen]
    return cluster, MarginTerms(float(layer.bias[place]), terms)


def path_terms(tree: LinearTree, row: Rows, label: int) -> list[MarginTerms]:
    """Return the terms of the margins from the first clusters down to the label, for the one text of `row`."""
    path: list[MarginTerms] = []
    child = label
    for layer in reversed(tree.layers):
        child, of_child = margin_terms(layer, row, child)
        path.append(of_child)
    return path[::-1]


def attribute_linear(
    tree: LinearTree, row: Rows, shares: TermShares, words: TextWords, label: int, cluster_weight: float
) -> Attribution:
    """Return the words' contributions to a label of a tree; `shares` are those of the features of `row`."""
    path = path_terms(tree, row, label)
    of_words = [shares.of_words(of_child.terms) for of_child in path]
    names = [*(f"clusters, level {number}" for number in range(1, len(path))), "label"]
    levels = tuple(
        LevelMargin(name, of_child.margin, of_child.bias, words.weighted(weights))
        for name, of_child, weights in zip(names, path, of_words, strict=True)
    )
    total = of_words[-1] + cluster_weight * sum(of_words[:-1], np.zeros(len(words)))
    return Attribution("contributions", total, levels=levels)
