from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError
from longtail.metrics import BootstrapOptions, Interval, MetricOptions, evaluate, intervals
from longtail.metrics.by_label import LabelCounts
from longtail.metrics.by_text import text_sums
from longtail.metrics.calibration import CalibrationErrors
from longtail.metrics.hits import judge
from longtail.metrics.names import ERRORS
from longtail.types import LabelMatrix, TopK

OPTIONS = MetricOptions(at=(1, 3), threshold=0.4)


class Case(NamedTuple):
    truth: LabelMatrix
    train_counts: np.ndarray
    n_train_texts: int


def case_of(n_texts: int, n_labels: int = 30, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    truth = [rng.choice(n_labels, rng.integers(1, 5), replace=False).tolist() for _ in range(n_texts)]
    return Case(LabelMatrix.from_lists(truth, n_labels), np.arange(n_labels) ** 2, 1000)


def guess(case: Case, skill: float, seed: int, k: int = 4) -> TopK:
    """Lists in which true labels come first the more often the greater the skill."""
    rng = np.random.default_rng(seed)
    wish = rng.random((case.truth.n_texts, case.truth.n_labels)) + skill * case.truth.to_scipy().toarray()
    labels = np.argsort(-wish, axis=1)[:, :k].astype(np.int32)
    return TopK(labels, np.broadcast_to(1.0 / np.arange(1, k + 1), labels.shape).astype(np.float32))


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=12, max_size=12).filter(any))
def test_a_text_of_weight_two_counts_as_two_texts(weights: list[int]) -> None:
    case = case_of(12)
    predicted = guess(case, 0.4, seed=1)
    judged = judge(predicted, *case, OPTIONS)
    rows = np.repeat(np.arange(12), weights)
    repeated = TopK(predicted.labels[rows], predicted.scores[rows])
    expected = evaluate(repeated, case.truth.take(rows), case.train_counts, case.n_train_texts, OPTIONS)
    tables = {"all": expected.values, **expected.bands}
    counts = LabelCounts(judged, OPTIONS)
    errors = CalibrationErrors(judged, OPTIONS)
    sums = [(s.band, s.name, s.above @ weights, s.below @ weights) for s in text_sums(judged, OPTIONS)]
    found = {(band, name): above / below for band, name, above, below in sums if below}
    for part in (counts, errors):
        values = part.values(np.array(weights, float)[:, None])[:, 0]
        found |= {key: value for key, value in zip(part.names, values, strict=True) if not math.isnan(value)}
    expected_of = {(band, name): value for band, table in tables.items() for name, value in table.items()}
    assert {key: value for key, value in found.items() if key[0] in tables} == pytest.approx(expected_of)


def test_intervals_stand_around_the_values_of_evaluate() -> None:
    case = case_of(200)
    predicted = guess(case, 0.4, seed=1)
    found, values = intervals(predicted, *case, OPTIONS), evaluate(predicted, *case, OPTIONS)
    assert list(found.values) == list(values.values)
    assert list(found.bands) == list(values.bands)
    for table, expected in [(found.values, values.values), *((found.bands[b], values.bands[b]) for b in values.bands)]:
        for name, interval in table.items():
            assert interval.value == pytest.approx(expected[name], abs=1e-12)
            assert 0.0 <= interval.low <= interval.value <= interval.high <= 1.0, name
        assert table["P@1"].low < table["P@1"].high


def test_the_interval_of_a_share_is_as_wide_as_the_binomial_one() -> None:
    case = case_of(1000)
    p1 = intervals(guess(case, 0.4, seed=1), *case, MetricOptions(at=(1,))).values["P@1"]
    half = 1.96 * math.sqrt(p1.value * (1 - p1.value) / 1000)
    assert p1.value - p1.low == pytest.approx(half, rel=0.15)
    assert p1.high - p1.value == pytest.approx(half, rel=0.15)


def test_a_plain_loop_over_resampled_texts_gives_the_same_interval() -> None:
    case = case_of(40)
    predicted = guess(case, 0.4, seed=1)
    options = BootstrapOptions(n_resamples=50, level=0.8, seed=3)
    drawn = np.random.default_rng(3).integers(0, 40, (50, 40))
    resampled = [
        evaluate(
            TopK(predicted.labels[rows], predicted.scores[rows]),
            case.truth.take(rows),
            case.train_counts,
            case.n_train_texts,
            OPTIONS,
        ).values
        for rows in drawn
    ]
    found = intervals(predicted, *case, OPTIONS, options).values
    for name in ("P@3", "nDCG@3", "PSP@3", "PSnDCG@1", "micro-F1", "micro-P", "Brier@3"):
        low, high = np.quantile([values[name] for values in resampled], [0.1, 0.9])
        assert (found[name].low, found[name].high) == pytest.approx((low, high), abs=1e-9), name
    for name in ("coverage@3", "macro-F1@3", "macro-F1", "ECE@1", "ECE@3"):
        values = np.array([values[name] for values in resampled])
        low, high = np.quantile(values - values.mean() + found[name].value, [0.1, 0.9])
        assert (found[name].low, found[name].high) == pytest.approx((low, high), abs=1e-5), name


def test_the_seed_decides_the_interval() -> None:
    case = case_of(60)
    predicted = guess(case, 0.4, seed=1)
    one, same, other = (
        intervals(predicted, *case, OPTIONS, BootstrapOptions(n_resamples=100, seed=s)) for s in (1, 1, 2)
    )
    assert one == same
    assert one.values["nDCG@3"] != other.values["nDCG@3"]


def test_a_higher_level_gives_a_wider_interval() -> None:
    case = case_of(60)
    narrow, wide = (
        intervals(guess(case, 0.4, seed=1), *case, OPTIONS, BootstrapOptions(level=level)) for level in (0.5, 0.99)
    )
    for name, interval in narrow.values.items():
        assert wide.values[name].low <= interval.low <= interval.high <= wide.values[name].high


def test_a_system_does_not_differ_from_itself() -> None:
    case = case_of(60)
    predicted = guess(case, 0.4, seed=1)
    found = intervals(predicted, *case, OPTIONS, minus=predicted)
    for interval in found.values.values():
        assert interval == Interval(0.0, 0.0, 0.0)
        assert not interval.excludes_zero


def test_a_better_system_differs_and_the_sign_says_which() -> None:
    case = case_of(300)
    good, bad = guess(case, 0.6, seed=1), guess(case, 0.1, seed=2)
    forth, back = intervals(good, *case, OPTIONS, minus=bad), intervals(bad, *case, OPTIONS, minus=good)
    for name, interval in forth.values.items():
        if not name.startswith(("coverage", *ERRORS)):  # both cover most of the thirty labels
            assert interval.value > 0
            assert interval.excludes_zero, name
        reverse = back.values[name]
        assert (-reverse.value, -reverse.high, -reverse.low) == pytest.approx(
            (interval.value, interval.low, interval.high), abs=1e-6
        )


def test_pairing_narrows_the_interval_of_systems_that_fail_on_the_same_texts() -> None:
    case = case_of(400)
    one = guess(case, 0.4, seed=1)
    other = TopK(one.labels.copy(), one.scores)
    other.labels[:20] = guess(case, 0.0, seed=9).labels[:20]
    alone = intervals(one, *case, OPTIONS).values["P@3"]
    apart = intervals(one, *case, OPTIONS, minus=other).values["P@3"]
    assert apart.high - apart.low < 0.5 * (alone.high - alone.low)


def test_what_one_of_two_systems_cannot_be_measured_by_has_no_difference() -> None:
    case = case_of(60)
    shares = guess(case, 0.4, seed=1)
    votes = TopK(shares.labels, 2 * shares.scores)
    alone, differences = intervals(votes, *case, OPTIONS), intervals(shares, *case, OPTIONS, minus=votes)
    assert alone.values.keys() == differences.values.keys() == evaluate(votes, *case, OPTIONS).values.keys()
    assert not [name for name in alone.values if name.startswith(ERRORS)]
    assert differences.values["P@1"] == Interval(0.0, 0.0, 0.0)


def test_a_band_with_a_single_text_has_an_interval() -> None:
    truth = LabelMatrix.from_lists([[0]] * 30 + [[1]], 2)
    predicted = TopK(np.zeros((31, 1), np.int32), np.ones((31, 1), np.float32))
    found = intervals(predicted, truth, np.array([500, 5]), 1000, MetricOptions(at=(1,)))
    assert found.bands["tail"]["P@1"] == Interval(0.0, 0.0, 0.0)
    assert found.bands["head"]["P@1"] == Interval(1.0, 1.0, 1.0)


def test_intervals_are_plain_data() -> None:
    case = case_of(30)
    found = intervals(guess(case, 0.4, seed=1), *case, OPTIONS, BootstrapOptions(n_resamples=20))
    plain = json.loads(json.dumps(found.plain(), allow_nan=False))
    assert set(plain["metrics"]["P@1"]) == {"value", "low", "high"}
    assert plain["bootstrap"] == {"n_resamples": 20, "level": 0.95, "seed": 0}


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(ConfigError, match="n_resamples"):
        BootstrapOptions.of({"n_resamples": 3})
