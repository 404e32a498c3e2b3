"""Where a model goes wrong: precision and recall by score, labels taken for each other, the worst texts and why.

precision_recall(evaluation)        ->  points from the highest score down
confused_labels(evaluation)         ->  pairs: a true label that was missed, and what was suggested in its texts
worst_texts(model, evaluation, n)   ->  rows of the texts where the model is surest of something wrong
reasons(model, evaluation, row)     ->  the words that speak for the wrong label, and for one that was missed
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np

from longtail.errors import LongtailError
from longtail.evaluation import SHOWN, Evaluation
from longtail.methods.base import Method
from longtail.scores.calibrate import are_right
from longtail.types import NO_LABEL

N_PAIRS = 12
N_WORST = 5
N_WORDS = 5
CURVE_POINTS = 60


def precision_recall(evaluation: Evaluation) -> list[dict[str, float]]:
    """Return precision and recall of all suggestions that score at least as much, from the highest score down."""
    lists, truth = evaluation.predicted, evaluation.truth
    filled = lists.labels != NO_LABEL
    scores, right = lists.scores[filled], are_right(lists, truth)[filled]
    if not len(scores) or not len(truth.indices):
        return []
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], np.cumsum(right[order])
    last = np.flatnonzero(np.append(ordered[1:] < ordered[:-1], True))  # of equal scores, all or none
    places = last[np.unique(np.linspace(0, len(last) - 1, min(len(last), CURVE_POINTS)).round().astype(np.int64))]
    return [
        {"score": float(ordered[at]), "precision": hits[at] / (at + 1), "recall": hits[at] / len(truth.indices)}
        for at in places.tolist()
    ]


def confused_labels(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the pairs of a missed and a wrongly suggested label that come together more often than by chance.

    Pairs are sorted by how many texts have both, times the cosine of the texts that have either.
    """
    pairs: Counter[tuple[int, int]] = Counter()
    missed_in: Counter[int] = Counter()
    wrong_in: Counter[int] = Counter()
    for row in range(len(evaluation.truth)):
        true = set(evaluation.truth[row].tolist())
        suggested = {label for label in evaluation.predicted.labels[row, :SHOWN].tolist() if label != NO_LABEL}
        missed, wrong = true - suggested, suggested - true
        pairs.update(product(missed, wrong))
        missed_in.update(missed)
        wrong_in.update(wrong)
    names = evaluation.vocabulary.names

    def weight(pair: tuple[int, int]) -> float:
        return float(pairs[pair] ** 2 / (missed_in[pair[0]] * wrong_in[pair[1]]) ** 0.5)

    best = sorted((pair for pair, n in pairs.items() if n > 1), key=lambda pair: (-weight(pair), pair))[:N_PAIRS]
    return [
        {
            "missed": names[missed],
            "suggested": names[wrong],
            "n": pairs[missed, wrong],
            "n_missed": missed_in[missed],
            "n_wrong": wrong_in[wrong],
        }
        for missed, wrong in best
    ]


def worst_texts(evaluation: Evaluation, n: int = N_WORST) -> list[int]:
    """Return the rows of texts with the fewest right suggestions, the surest mistakes first."""
    lists = evaluation.predicted.first(SHOWN)
    right = are_right(lists, evaluation.truth)
    wrong_scores = np.where(right | (lists.labels == NO_LABEL), -np.inf, lists.scores).max(axis=1, initial=-np.inf)
    rows = np.flatnonzero((evaluation.truth.labels_per_text() > 0) & np.isfinite(wrong_scores))
    order = np.lexsort((rows, -wrong_scores[rows], right.sum(axis=1)[rows]))
    return [int(row) for row in rows[order[:n]]]


def reasons(model: Method, evaluation: Evaluation, row: int) -> list[dict[str, Any]]:
    """Return why the surest wrong label of a text was suggested, and what spoke for the label that was missed.

    Nothing where the model reads no texts.
    """
    if not evaluation.split.has_texts:
        return []
    true = set(evaluation.truth[row].tolist())
    suggested = [label for label in evaluation.predicted.labels[row, :SHOWN].tolist() if label != NO_LABEL]
    wrong = [label for label in suggested if label not in true][:1]
    known = np.intersect1d(evaluation.truth[row], model.scored_labels_)
    missed = [int(label) for label in known if label not in suggested]
    missed = sorted(missed, key=lambda label: -evaluation.train_counts[label])[:1]
    texts = evaluation.split.texts
    fields = {name: texts[name][row].as_py() for name in texts.column_names}
    causes = []
    for kind, label in [("wrong", label) for label in wrong] + [("missed", label) for label in missed]:
        try:
            explanation = model.explain(fields, evaluation.vocabulary.ids[label])
        except LongtailError:  # an empty text
            continue
        words = [word.word for word in explanation.top(N_WORDS)]
        causes.append({"kind": kind, "name": explanation.name, "score": explanation.score, "words": words})
    return causes
