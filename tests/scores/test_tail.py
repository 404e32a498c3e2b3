"""Rare labels moved up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ConfigError
from longtail.scores.tail import favour_tail, longer_list
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK


def ranked_again(found: TopK, k: int, power: float, counts: list[int], n_texts: int) -> TopK:
    """The definition, one label at a time."""
    weights = [1 / (1 / (1 + (math.log(n_texts) - 1) * 2.5**0.55 * (count + 1.5) ** -0.55)) for count in counts]
    labels, scores = np.full((len(found), k), NO_LABEL, np.int32), np.full((len(found), k), -np.inf, np.float32)
    for row in range(len(found)):
        pairs = []
        for label, score in zip(found.labels[row].tolist(), found.scores[row].tolist(), strict=True):
            if label != NO_LABEL:
                pairs.append((-np.float32(score * (weights[label] / max(weights)) ** power), label))
        for place, (score, label) in enumerate(sorted(pairs)[:k]):
            labels[row, place], scores[row, place] = label, -score
    return TopK(labels, scores)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3, 1.0, 2.5]))
def test_a_weighted_list_is_that_of_a_plain_reference(seed: int, power: float) -> None:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 300, 12)
    scores = rng.choice([0.0, 0.1, 0.5, 0.9], (4, 12)).astype(np.float32)  # many ties
    found = top_k(np.tile(np.arange(12), (4, 1)), scores, 12)
    found.labels[0, 9:], found.scores[0, 9:] = NO_LABEL, -np.inf
    weighted = favour_tail(found, 5, power=power, train_counts=counts, n_train_texts=1000)
    expected = ranked_again(found, 5, power, counts.tolist(), 1000)
    np.testing.assert_array_equal(weighted.labels, expected.labels)
    np.testing.assert_allclose(weighted.scores, expected.scores, rtol=1e-6)


def test_equal_weighted_scores_stand_in_the_order_of_label_ids() -> None:
    found = TopK(np.array([[3, 1, 0, 2]], np.int32), np.array([[0.5, 0.5, 0.5, 0.25]], np.float32))
    assert favour_tail(
        found, 4, power=1.0, train_counts=np.array([7, 7, 7, 7]), n_train_texts=1000
    ).labels.tolist() == [[0, 1, 3, 2]]
    assert favour_tail(
        found, 4, power=1.0, train_counts=np.array([7, 7, 7, 1]), n_train_texts=1000
    ).labels.tolist() == [[3, 0, 1, 2]]


def test_the_rarest_label_keeps_its_score_and_no_score_grows() -> None:
    found = TopK(np.array([[0, 1, 2]], np.int32), np.array([[0.9, 0.8, 0.7]], np.float32))
    weighted = favour_tail(found, 3, power=1.0, train_counts=np.array([500, 60, 1]), n_train_texts=1000)
    assert weighted.labels.tolist() == [[2, 1, 0]]
    assert weighted.scores[0, 0] == np.float32(0.7)
    assert weighted.scores[0, 1] < 0.8
    assert favour_tail(
        TopK(found.labels[:0], found.scores[:0]), 2, power=1.0, train_counts=np.array([5, 6, 1]), n_train_texts=9
    ).labels.shape == (0, 2)


def test_many_texts_are_weighted_some_at_a_time() -> None:
    rng = np.random.default_rng(0)
    found = top_k(np.tile(np.arange(20), (50, 1)), rng.random((50, 20)).astype(np.float32), 20)
    counts = rng.integers(1, 99, 20)
    whole = favour_tail(found, 5, power=0.7, train_counts=counts, n_train_texts=500)
    blocks = favour_tail(found, 5, power=0.7, train_counts=counts, n_train_texts=500, scores_at_once=100)
    assert np.array_equal(whole.labels, blocks.labels)
    assert whole.scores.tobytes() == blocks.scores.tobytes()


def test_scores_below_zero_are_not_weighted() -> None:
    logs = TopK(np.array([[0, 1]], np.int32), np.array([[-0.1, -3.0]], np.float32))
    with pytest.raises(ConfigError, match=r"tail_weight must be 0 where scores can be negative.* got a score of -3"):
        favour_tail(logs, 1, power=0.5, train_counts=np.array([1, 1]), n_train_texts=10)


def test_lists_are_longer_before_they_are_weighted() -> None:
    assert [longer_list(k) for k in (1, 5, 10, 30)] == [100, 100, 100, 300]
