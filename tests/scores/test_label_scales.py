"""Scores become those of a better model, label by label."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.chain import Chain
from longtail.scores.label_scales import LabelScales, fit_label_scales, log_odds
from longtail.types import NO_LABEL, TopK

LABELS = ModelLabels(Vocabulary.of(list("abcd")), np.ones(4, np.int64), np.arange(4, dtype=np.int32), 10)


def lists(n_texts: int, seed: int = 0) -> TopK:
    """All four labels of each text with scores drawn by chance, best first."""
    rng = np.random.default_rng(seed)
    scores = -np.sort(-rng.uniform(0.05, 0.95, (n_texts, 4)), axis=1)
    return TopK(rng.permuted(np.tile(np.arange(4), (n_texts, 1)), axis=1).astype(np.int32), scores.astype(np.float32))


def test_what_a_better_model_does_to_labels_is_learned() -> None:
    some = lists(4000)
    scale, shift = np.array([1.0, 1.0, 2.0, 0.5]), np.array([0.0, 2.0, -1.0, 0.0])
    better = 1 / (1 + np.exp(-(scale[some.labels] * log_odds(some.scores) + shift[some.labels])))
    step = fit_label_scales(some, TopK(some.labels, better.astype(np.float32)), 4)
    learned = step.apply(some, 4, LABELS)
    expected = np.sort(better, axis=1)[:, ::-1]
    assert np.abs(learned.scores - expected).mean() < 0.01
    assert np.abs(learned.scores - some.scores).mean() > 0.1


@given(st.integers(1, 6), st.integers(0, 10))
def test_lists_stay_lists(k: int, seed: int) -> None:
    some = lists(5, seed)
    some.labels[0, 2:], some.scores[0, 2:] = NO_LABEL, -np.inf
    step = LabelScales(length=4, scale=1.5, shift=-0.5, scales=(0.0, 0.1, -0.2, 0.0), shifts=(1.0, 0.0, -3.0, 0.0))
    scaled = step.apply(some, k, LABELS)
    assert scaled.labels.shape == scaled.scores.shape == (5, min(k, 4))
    assert (scaled.scores[:, :-1] >= scaled.scores[:, 1:]).all()
    assert (scaled.labels[0] != NO_LABEL).sum() == min(k, 2)
    assert np.array_equal(scaled.labels == NO_LABEL, np.isneginf(scaled.scores))
    assert all(len(set(row) - {NO_LABEL}) == sum(each != NO_LABEL for each in row) for row in scaled.labels.tolist())
    assert step.n_candidates(k) == max(k, 4)


@given(st.integers(1, 3), st.integers(0, 50))
def test_a_shorter_list_is_the_beginning_of_a_longer_one(length: int, seed: int) -> None:
    step = LabelScales(length=length, scale=1.0, shift=0.0, scales=(0.0,) * 4, shifts=(-3.0, 2.0, 0.5, 1.0))
    some = lists(6, seed)
    long = step.apply(some, 4, LABELS)
    short = step.apply(some.first(step.n_candidates(2)), 2, LABELS)
    assert np.array_equal(long.labels[:, :length], step.apply(some.first(length), length, LABELS).labels)
    assert (long.scores[:, :-1] >= long.scores[:, 1:]).all()
    if length >= 2:
        assert np.array_equal(short.labels, long.labels[:, :2])


def test_it_is_saved_with_a_chain() -> None:
    step = fit_label_scales(lists(50), lists(50, 1), 4)
    assert Chain.of(Chain((step,)).plain()).steps == (step,)


def test_models_that_say_nothing_of_the_same_labels_are_refused() -> None:
    some = lists(3)
    other = TopK(some.labels + 4, some.scores)
    with pytest.raises(DataError, match="must suggest some of the same labels"):
        fit_label_scales(some, other, 8)
