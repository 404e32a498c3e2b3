from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from napkinxc.metrics import Jain_et_al_inverse_propensity

from longtail import propensity
from longtail.errors import ConfigError, DataError
from longtail.propensity import USUAL, Propensity, favour_tail, inverse_propensity, longer_list, propensities_of
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK


def test_the_weight_of_a_label_follows_the_formula() -> None:
    c = (math.log(1000) - 1) * 2.5**0.55
    expected = [1 + c * 1.5**-0.55, 1 + c * 2.5**-0.55, 1 + c * 101.5**-0.55]
    assert inverse_propensity(np.array([0, 1, 100]), 1000) == pytest.approx(expected, rel=1e-12)


def test_weights_agree_with_napkinxc() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random((60, 20)) < rng.random(20) * 0.3).astype(float)
    for constants in (USUAL, Propensity(a=0.6, b=2.6)):
        ours = inverse_propensity(y.sum(axis=0), 60, constants)
        np.testing.assert_allclose(ours, Jain_et_al_inverse_propensity(y, A=constants.a, B=constants.b), rtol=1e-12)


@given(st.integers(1, 10**7), st.lists(st.integers(0, 10**6), min_size=1, max_size=20))
def test_rarer_labels_never_weigh_less_and_no_weight_is_below_one(n_texts: int, counts: list[int]) -> None:
    weights = inverse_propensity(np.sort(counts), n_texts)
    assert (weights >= 1).all()
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("EURLex-4K", [(0.55, 1.5)]),
        ("tibkat-gnd", [(0.55, 1.5)]),
        ("Wiki10-31K", [(0.55, 1.5), (0.5, 0.4)]),
        ("wiki10_31k", [(0.55, 1.5), (0.5, 0.4)]),
        ("AmazonCat-13K", [(0.55, 1.5), (0.6, 2.6)]),
        ("Amazon-670K", [(0.6, 2.6)]),
        ("Amazon-3M", [(0.6, 2.6)]),
        ("LF-AmazonTitles-131K", [(0.6, 2.6)]),
        ("AmazonTitles-670K", [(0.6, 2.6)]),
        ("attentionxml/amazon-670k", [(0.6, 2.6)]),
        ("Wiki-500K", [(0.5, 0.4)]),
        ("LF-Wikipedia-500K", [(0.5, 0.4)]),
        ("LF-WikiTitles-500K", [(0.5, 0.4)]),
        ("WikiLSHTC-325K", [(0.5, 0.4)]),
        ("LF-WikiSeeAlso-320K", [(0.55, 1.5)]),
    ],
)
def test_a_data_set_has_the_constants_of_the_literature(name: str, settings: list[tuple[float, float]]) -> None:
    assert [(p.a, p.b) for p in propensities_of(name)] == settings


def test_constants_must_be_positive() -> None:
    with pytest.raises(ConfigError, match=r"a must be greater than 0, got -1"):
        Propensity.of({"a": -1})


def test_no_training_text_is_an_error() -> None:
    with pytest.raises(DataError, match="n_train_texts must be at least 1, got 0"):
        inverse_propensity(np.array([0]), 0)


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
    weighted = favour_tail(found, 5, power, counts, 1000)
    expected = ranked_again(found, 5, power, counts.tolist(), 1000)
    np.testing.assert_array_equal(weighted.labels, expected.labels)
    np.testing.assert_allclose(weighted.scores, expected.scores, rtol=1e-6)


def test_equal_weighted_scores_stand_in_the_order_of_label_ids() -> None:
    found = TopK(np.array([[3, 1, 0, 2]], np.int32), np.array([[0.5, 0.5, 0.5, 0.25]], np.float32))
    assert favour_tail(found, 4, 1.0, np.array([7, 7, 7, 7]), 1000).labels.tolist() == [[0, 1, 3, 2]]
    assert favour_tail(found, 4, 1.0, np.array([7, 7, 7, 1]), 1000).labels.tolist() == [[3, 0, 1, 2]]


def test_the_rarest_label_keeps_its_score_and_no_score_grows() -> None:
    found = TopK(np.array([[0, 1, 2]], np.int32), np.array([[0.9, 0.8, 0.7]], np.float32))
    weighted = favour_tail(found, 3, 1.0, np.array([500, 60, 1]), 1000)
    assert weighted.labels.tolist() == [[2, 1, 0]]
    assert weighted.scores[0, 0] == np.float32(0.7)
    assert weighted.scores[0, 1] < 0.8
    assert favour_tail(TopK(found.labels[:0], found.scores[:0]), 2, 1.0, np.array([5, 6, 1]), 9).labels.shape == (0, 2)


def test_many_texts_are_weighted_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    found = top_k(np.tile(np.arange(20), (50, 1)), rng.random((50, 20)).astype(np.float32), 20)
    counts = rng.integers(1, 99, 20)
    whole = favour_tail(found, 5, 0.7, counts, 500)
    monkeypatch.setattr(propensity, "_SCORES_AT_ONCE", 100)
    parts = favour_tail(found, 5, 0.7, counts, 500)
    assert np.array_equal(whole.labels, parts.labels)
    assert whole.scores.tobytes() == parts.scores.tobytes()


def test_scores_below_zero_are_not_weighted() -> None:
    logs = TopK(np.array([[0, 1]], np.int32), np.array([[-0.1, -3.0]], np.float32))
    with pytest.raises(ConfigError, match=r"tail_weight must be 0 where scores can be negative.* got a score of -3"):
        favour_tail(logs, 1, 0.5, np.array([1, 1]), 10)


def test_lists_are_longer_before_they_are_weighted() -> None:
    assert [longer_list(k) for k in (1, 5, 10, 30)] == [100, 100, 100, 300]
