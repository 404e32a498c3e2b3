"""The ranker of a stack learns from texts that nobody has seen."""

from __future__ import annotations

import numpy as np

from longtail.data.dataset import Split
from longtail.evaluation import evaluate_model
from longtail.methods.stack import Stack

RANKER = {"kind": "logistic"}
MEMBERS = ["linear", {"method": "knn", "options": {"n_neighbours": 3}}]


def chance(n_texts: int, n_copies: int) -> Split:
    """Texts whose labels nobody can know, each there several times with the same labels."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([f"w{i}" for i in range(400)], 12)) for _ in range(n_texts)]
    labels = [[f"label{label}"] for label in rng.integers(0, 4, n_texts)]
    return Split.of(texts * n_copies, labels * n_copies)


def test_copies_of_training_texts_give_no_false_confidence() -> None:
    """A member that had seen a text's copy would be right about it, and the ranker would trust it with everything."""
    model = Stack(members=MEMBERS, n_ranked_folds=5, ranker=RANKER).fit(chance(100, 3), threads=1)
    assert model.top_k(chance(100, 1), 1, threads=1).scores.mean() < 0.4


def test_scores_of_unseen_texts_are_probabilities() -> None:
    rng = np.random.default_rng(1)
    names = [f"label{number}" for number in range(6)]
    labels = [[names[number % 6]] for number in range(900)]
    texts = [
        f"{label if rng.random() < 0.7 else rng.choice(names)} " + " ".join(rng.choice(list("abcdefgh"), 4))
        for (label,) in labels
    ]
    split = Split.of(texts, labels)
    model = Stack(members=MEMBERS, ranker=RANKER, n_ranked_folds=5).fit(split[:600], threads=1)
    best = model.top_k(split[600:], 1, threads=1)
    right = [label in split.labels[600 + text] for text, (label,) in enumerate(best.labels.tolist())]
    assert abs(best.scores.mean() - np.mean(right)) < 0.06
    assert evaluate_model(model, split[600:]).metrics.values["P@1"] > 0.6
