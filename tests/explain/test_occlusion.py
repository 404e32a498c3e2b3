"""Leaving words out, one by one or in groups first."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.explain.occlusion import log_odds, occlusion, scores_of
from longtail.explain.words import TextWords
from longtail.text.readings import TextReadings
from longtail.types import NO_LABEL, TopK


class Counting:
    """Scores label 1 by how many of some words a text has, and counts the texts that it is asked about."""

    def __init__(self, words: dict[str, float]) -> None:
        self.words, self.n_asked = words, 0

    def __call__(self, texts: TextReadings, n: int) -> TopK:
        self.n_asked += len(texts)
        has = [
            sum(self.words[word] for word in text.split() if word in self.words)
            for text in texts.table["text"].to_pylist()
        ]
        return TopK(
            np.array([[0, 1]] * len(texts), np.int32), np.array([[0.9, 0.1 + value] for value in has], np.float32)
        )


def test_the_word_that_a_label_needs_weighs_most() -> None:
    words = TextWords.of({"text": "one two three two"})
    weights = occlusion(words, 1, 2, Counting({"two": 0.2, "three": 0.1}))
    assert np.argsort(-weights).tolist() == [1, 2, 0]
    assert weights[0] == 0


def test_few_of_many_words_are_left_out_alone() -> None:
    forms = [f"w{number}" for number in range(500)]
    ask = Counting({"w77": 0.3, "w400": 0.2})
    weights = occlusion(TextWords.of({"text": " ".join(forms)}), 1, 2, ask, most=90)
    assert np.argsort(-weights)[:2].tolist() == [77, 400]
    assert ask.n_asked <= 92
    assert np.count_nonzero(weights) == 2


def test_a_label_that_falls_out_of_the_list_has_score_zero() -> None:
    lists = TopK(np.array([[3, 1], [2, NO_LABEL]], np.int32), np.array([[0.5, 0.25], [0.5, -np.inf]], np.float32))
    assert scores_of(lists, 1).tolist() == [0.25, 0.0]


def test_certain_scores_stay_finite_and_votes_stay_as_they_are() -> None:
    assert np.isfinite(log_odds(np.array([0, 0.5, 1], np.float32))).all()
    assert log_odds(np.array([0.5], np.float32))[0] == pytest.approx(0)
    assert log_odds(np.array([2.5, 0], np.float32)).tolist() == [2.5, 0]
