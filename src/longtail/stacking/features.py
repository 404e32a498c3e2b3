"""The features of each candidate.

of each member      logit of its score, 1 / (1 + rank), logit minus that of its best label
of the label        frequency; how often each member was right about it on texts it had not seen, if any text has it
of the other        P(label | each of the three best candidates), and what it has of them weighted by their scores;
candidates          best logit of a parent and of a child, distance to the best sibling; their number
of the text         length

candidates, lists [TopK (n_texts, length), ...]  ->  (n_candidates, n_features) float32
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.scores.calibrate import are_right
from longtail.stacking.candidates import Candidates, keys_of
from longtail.stacking.label_facts import Hierarchy, LabelFacts
from longtail.types import NO_LABEL, LabelMatrix, TopK

N_OF_MEMBER = 4
"""Features of each member; the first is its logit."""
ABSENT = np.float32(-16)
"""The logit of a label that a member left out."""
_CERTAIN = 1e-6
_SMOOTHING = 5
"""Proposals of the usual precision that each label begins with."""
_N_BEST = 3
"""Candidates that the others are compared with."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known beside the lists."""

    facts: LabelFacts
    hierarchy: Hierarchy | None
    precision: NDArray[np.float32]  # (n_members, n_labels) how often a label was right where a member proposed it


def n_features(n_members: int, has_hierarchy: bool) -> int:
    """Return the number of columns of `candidate_features`."""
    return N_OF_MEMBER * n_members + 3 + _N_BEST + 1 + (3 if has_hierarchy else 0)


def candidate_features(
    candidates: Candidates, lists: Sequence[TopK], lengths: NDArray[np.float32], evidence: Evidence
) -> NDArray[np.float32]:
    """Return the features of each candidate, (n_candidates, n_features); `lengths` has one entry per text."""
    texts, labels = candidates.texts, candidates.labels
    columns: list[NDArray[np.float32]] = []
    total = np.zeros(len(candidates), np.float32)
    for one, precision in zip(lists, evidence.precision, strict=True):
        logits, ranks = _of_member(candidates, one)
        best = np.full(candidates.n_texts, ABSENT)
        np.maximum.at(best, texts, logits)
        columns += [logits, ranks, logits - best[texts], precision[labels]]
        total += logits
    mean = total / np.float32(len(lists))
    n_candidates = np.diff(candidates.indptr).astype(np.float32)
    columns += [evidence.facts.log_frequency(labels), n_candidates[texts], lengths[texts]]
    columns += _with_best(candidates, mean, evidence.facts)
    if evidence.hierarchy is not None:
        columns += _in_hierarchy(candidates, mean, evidence.hierarchy)
    return np.stack(columns, axis=1).astype(np.float32)


def text_lengths(texts: pa.Table) -> NDArray[np.float32]:
    """Return the log of the number of bytes of each text, all its columns together, (n_texts,)."""
    total = np.zeros(len(texts), np.float64)
    for name in texts.column_names:
        total += np.asarray(pc.binary_length(texts[name]))
    return np.log1p(total).astype(np.float32)


def precision_of_labels(lists: TopK, labels: LabelMatrix, has_texts: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return how often each label of a member's lists was right, (n_labels,), smoothed towards that of all labels.

    Labels without training texts, (n_labels,), have that of all labels.
    """
    filled = lists.labels != NO_LABEL
    proposed, right = lists.labels[filled], are_right(lists, labels)[filled]
    n = np.bincount(proposed, minlength=labels.n_labels)
    n_right = np.bincount(proposed, weights=right, minlength=labels.n_labels)
    usual = n_right.sum() / max(n.sum(), 1)
    n, n_right = n * has_texts, n_right * has_texts
    return np.asarray((n_right + _SMOOTHING * usual) / (n + _SMOOTHING), np.float32)


def _of_member(candidates: Candidates, lists: TopK) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the logit and 1 / (1 + rank) that a member gives each candidate."""
    keys, filled = keys_of(lists, candidates.n_labels)
    places, _ = candidates.find(keys)
    logits, ranks = np.full(len(candidates), ABSENT), np.zeros(len(candidates), np.float32)
    scores = np.clip(lists.scores[filled].astype(np.float64), _CERTAIN, 1 - _CERTAIN)
    logits[places] = np.log(scores / (1 - scores))
    ranks[places] = np.broadcast_to(1 / (1 + np.arange(lists.k)), filled.shape)[filled]
    return logits, ranks


def _with_best(candidates: Candidates, mean: NDArray[np.float32], facts: LabelFacts) -> list[NDArray[np.float32]]:
    """Return how likely each candidate is beside each of the three best ones, and beside all three by their scores."""
    best = candidates.top_k(mean, _N_BEST)
    columns, total = [], np.zeros(len(candidates), np.float32)
    for place in range(_N_BEST):
        given = best.labels[candidates.texts, place].astype(np.int64)
        weight = 1 / (1 + np.exp(-best.scores[candidates.texts, place]))
        share = np.where(given == candidates.labels, np.float32(0), facts.share(given, candidates.labels))
        columns.append(share)
        total += np.where(given == NO_LABEL, 0, weight).astype(np.float32) * share
    return [*columns, total]


def _in_hierarchy(candidates: Candidates, mean: NDArray[np.float32], tree: Hierarchy) -> list[NDArray[np.float32]]:
    """Return the best score of a parent and of a child among the candidates, and the distance to the best sibling."""
    child, parent_labels = tree.above(candidates.labels)
    texts = candidates.texts[child]
    places, is_candidate = candidates.find(texts * candidates.n_labels + parent_labels)
    is_candidate &= parent_labels < candidates.n_labels
    parent, below = np.full(len(candidates), ABSENT), np.full(len(candidates), ABSENT)
    np.maximum.at(parent, child[is_candidate], mean[places[is_candidate]])
    np.maximum.at(below, places[is_candidate], mean[child[is_candidate]])
    _, family = np.unique(texts * tree.n_numbers + parent_labels, return_inverse=True)
    best = np.full(int(family.max(initial=-1)) + 1, -np.inf, np.float32)
    np.maximum.at(best, family, mean[child])
    sibling = np.zeros(len(candidates), np.float32)
    np.maximum.at(sibling, child, best[family] - mean[child])
    return [parent, below, sibling]
