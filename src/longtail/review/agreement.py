"""How far people agree: Krippendorff's alpha.

    alpha = 1 - observed disagreement / disagreement by chance        1 agreement, 0 chance, below 0 worse than chance

Texts on which at least two people decided count; people may be many and different for each text. For one label, people
agree or not whether a text has it. For whole sets of labels, the disagreement of two sets is 1 - |common| / |either|.

Krippendorff, K. (2004): Reliability in content analysis. Human Communication Research 30(3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from longtail.sparse import sp

Sets = Sequence[Collection[str]]
"""The label sets of one text, one per person."""


class LabelAgreement(NamedTuple):
    """How far people agree on one label."""

    label: str
    alpha: float | None
    n_texts: int
    """Texts to which somebody gave the label, of those that several people saw."""


def alpha_of_sets(texts: Sequence[Sets]) -> float | None:
    """Return alpha of whole label sets; None if no two people met, or if all sets are the same."""
    units = [sets for sets in texts if len(sets) > 1]
    flat = [frozenset(labels) for sets in units for labels in sets]
    n = len(flat)
    if not n:
        return None
    observed = sum(
        2 * sum(_distance(a, b) for i, a in enumerate(sets) for b in sets[:i]) / (len(sets) - 1) for sets in units
    )
    by_chance = _sum_of_distances(flat) / (n - 1)
    return None if by_chance == 0 else 1 - observed / by_chance


def alpha_of_labels(texts: Sequence[Sets]) -> list[LabelAgreement]:
    """Return alpha of each label that somebody gave, by falling number of texts."""
    units = [sets for sets in texts if len(sets) > 1]
    n = sum(map(len, units))
    n_texts: Counter[str] = Counter()
    given: Counter[str] = Counter()
    observed: Counter[str] = Counter()
    for sets in units:
        size = len(sets)
        for label, count in Counter(label for labels in sets for label in set(labels)).items():
            n_texts[label] += 1
            given[label] += count
            observed[label] += 2 * count * (size - count) / (size - 1)  # type: ignore[assignment]
    agreements = []
    for label, texts_with_it in n_texts.items():
        by_chance = 2 * given[label] * (n - given[label]) / (n - 1)
        alpha = None if by_chance == 0 else 1 - observed[label] / by_chance
        agreements.append(LabelAgreement(label, alpha, texts_with_it))
    return sorted(agreements, key=lambda one: (-one.n_texts, one.label))


def _distance(a: Collection[str], b: Collection[str]) -> float:
    """Return 1 - |common| / |either|; two empty sets are the same."""
    either = len({*a, *b})
    return 1 - len({*a} & {*b}) / either if either else 0.0


def _sum_of_distances(sets: Sequence[frozenset[str]]) -> float:
    """Return the sum over all ordered pairs of different places; equal sets are counted once and weighted."""
    times = Counter(sets)
    kinds = list(times)
    weights = np.array([times[kind] for kind in kinds], np.float64)
    sizes = np.array([len(kind) for kind in kinds], np.float64)
    number = {label: i for i, label in enumerate(sorted({label for kind in kinds for label in kind}))}
    indices = [number[label] for kind in kinds for label in kind]
    indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    rows = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(kinds), max(len(number), 1)))
    common = (rows @ rows.T).tocoo()  # pairs that have nothing in common are far apart, and not stored
    near = common.data / (sizes[common.row] + sizes[common.col] - common.data)
    similar = float((near * weights[common.row] * weights[common.col]).sum())
    similar += float(weights[sizes == 0].sum() ** 2)
    return float(weights.sum() ** 2 - similar)
