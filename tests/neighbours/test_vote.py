"""Votes of neighbours, beside a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.neighbours import NO_TEXT, Neighbours
from longtail.neighbours.vote import vote
from longtail.types import NO_LABEL, LabelMatrix

LABELS = LabelMatrix.from_lists([[0, 1], [1], [], [2, 3], [0]], 5)
FOUND = Neighbours(
    np.array([[0, 1, 3], [3, 2, NO_TEXT], [4, 1, 0], [1, 2, 3]], np.int32),
    np.array([[0.9, 0.5, 0.5], [0.8, 0.4, -np.inf], [0.3, 0.0, -0.2], [0.0, 0.0, 0.0]], np.float32),
)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.5])
def test_a_score_is_the_share_of_the_votes_weighted_by_cosine(power: float) -> None:
    found = vote(FOUND, LABELS, power, 5)
    for row in range(4):
        scores: dict[int, float] = {}
        total = 0.0
        for text, cosine in zip(FOUND.texts[row], FOUND.cosines[row].tolist(), strict=True):
            if cosine > 0:
                total += cosine**power
                for label in LABELS[text].tolist():
                    scores[label] = scores.get(label, 0) + cosine**power
        best = sorted(scores, key=lambda label: (-scores[label], label))
        assert found.labels[row].tolist() == best + [NO_LABEL] * (5 - len(best))
        assert found.scores[row, : len(best)] == pytest.approx([scores[label] / total for label in best], rel=1e-5)
        assert np.isneginf(found.scores[row, len(best) :]).all()


def test_neighbours_that_share_nothing_do_not_vote() -> None:
    assert (vote(FOUND, LABELS, 0.0, 3).labels[3] == NO_LABEL).all()
    assert vote(FOUND, LABELS, 0.0, 3).labels[2].tolist() == [0, NO_LABEL, NO_LABEL]


def test_a_label_that_all_neighbours_have_scores_one_and_none_scores_more() -> None:
    rng = np.random.default_rng(0)
    cosines = -np.sort(-rng.random((200, 17), np.float32), axis=1)
    texts = np.tile(np.arange(17, dtype=np.int32), (200, 1))
    found = vote(Neighbours(texts, cosines), LabelMatrix.from_lists([[0]] * 17, 2), 3.0, 1)
    assert found.scores.max() <= 1
    assert found.scores.min() == pytest.approx(1, abs=1e-6)
