"""Scores that people can read."""

from __future__ import annotations

import numpy as np

from longtail.kernels.reference.beam import log_score
from longtail.linear.ranker import ScoreOptions
from longtail.scores.display import display_scores
from longtail.types import TopK


def test_scores_are_spread_for_people_and_the_order_stays() -> None:
    margins = np.array([[1.2, 0.9, 0.5, 0.0, -1.0, -2.0]])
    raw = np.exp(log_score(margins, 4)).astype(np.float32)
    labels = np.array([[0, 1, 2, 3, 4, 5, -1]], np.int32)
    lists = TopK(labels, np.append(raw, np.float32([[-np.inf]]), 1))
    spread_out = display_scores(lists, 4)
    np.testing.assert_allclose(spread_out.scores[0, 1:6], np.exp(margins[0, 1:] - 1), rtol=1e-2)
    assert (np.diff(spread_out.scores[0]) < 0).all()
    assert spread_out.scores[0, 6] == -np.inf
    assert display_scores(lists, 0) is lists


def test_scores_are_spread_by_the_power_of_the_ranker() -> None:
    scores = np.exp(log_score(np.array([[0.5, -1.0]]), 3)).astype(np.float32)
    lists = TopK(np.array([[1, 2]], np.int32), scores)
    shown = display_scores(lists, ScoreOptions(label_power=3).power).scores
    np.testing.assert_allclose(shown, np.exp([[-0.5, -2.0]]), rtol=1e-2)
    assert display_scores(lists, ScoreOptions(order="margin").power) is lists


def test_votes_by_rank_stay_as_they_are() -> None:
    lists = TopK(np.array([[1, 2]], np.int32), np.array([[7.0, 0.5]], np.float32))
    assert display_scores(lists, 4) is lists
