"""Scores as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.scores.calibrate import Calibrate, are_right, best_f1_threshold, fit_calibration
from longtail.scores.chain import Chain
from longtail.scores.tail import Tail
from longtail.types import LabelMatrix, TopK

RNG = np.random.default_rng(0)


def many(n: int = 4000) -> tuple[TopK, LabelMatrix]:
    """Lists whose scores are the square roots of how likely they are right."""
    truth = np.sort(RNG.random((n, 3)), axis=1)[:, ::-1]
    labels = np.tile(np.arange(3, dtype=np.int32), (n, 1))
    assigned = [np.flatnonzero(RNG.random(3) < row).tolist() for row in truth]
    return TopK(labels, np.sqrt(truth).astype(np.float32)), LabelMatrix.from_lists(assigned, 3)


def test_calibrated_scores_are_as_often_right_as_they_say() -> None:
    step = fit_calibration(*many())
    lists, labels = many()
    probabilities, right = step.probability(lists.scores), are_right(lists, labels)
    for low in np.arange(0, 1, 0.1):
        here = (probabilities >= low) & (probabilities < low + 0.1)
        assert abs(probabilities[here].mean() - right[here].mean()) < 0.05


def test_the_order_of_a_list_stays() -> None:
    step = fit_calibration(*many())
    assert (np.diff(step.probability(np.linspace(-1, 2, 500, dtype=np.float32))) >= 0).all()
    assert 0 < min(step.probabilities) < max(step.probabilities) < 1
    assert len(step.scores) <= 200


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=30), st.integers(0, 5))
def test_the_threshold_is_the_best_of_all(pairs: list[tuple[int, bool]], n_missed: int) -> None:
    scores, right = np.array([s / 8 for s, _ in pairs]), np.array([r for _, r in pairs])
    n_assigned = int(right.sum()) + n_missed

    def f1(threshold: float) -> float:
        kept = scores >= threshold
        return float(2 * right[kept].sum() / max(kept.sum() + n_assigned, 1))

    best = best_f1_threshold(scores, right, n_assigned)
    assert f1(best) == pytest.approx(max(map(f1, scores)))


def test_a_model_that_misses_fewer_labels_than_that_of_the_lists_gets_a_higher_threshold() -> None:
    lists, labels = many()
    missed = LabelMatrix.from_lists([[*labels[row].tolist(), 3, 4] for row in range(len(labels))], 5)
    known = len(labels.indices)
    assert fit_calibration(lists, missed).f1_threshold < fit_calibration(lists, missed, known).f1_threshold
    assert fit_calibration(lists, missed, known).f1_threshold == fit_calibration(lists, labels).f1_threshold


def test_labels_of_one_probability_keep_the_order_of_their_scores() -> None:
    flat = TopK(np.zeros((400, 1), np.int32), np.linspace(0, 1, 400, dtype=np.float32)[:, None])
    step = fit_calibration(flat, LabelMatrix.from_lists([[row % 2] for row in range(400)], 2))
    probabilities = step.probability(np.linspace(0, 1, 300, dtype=np.float32))
    assert (np.diff(probabilities[5:-5]) > 0).all()
    assert np.ptp(probabilities[5:-5]) < 0.15


def test_a_chain_knows_its_threshold_only_where_it_is_calibrated() -> None:
    step = Calibrate(scores=(0.0, 1.0), probabilities=(0.1, 0.9), f1_threshold=0.4)
    assert Chain((step,)).lowest_score("auto") == 0.4
    assert Chain.of(Chain((step,)).plain()).steps == (step,)
    with pytest.raises(ConfigError, match="calibrated scores"):
        Chain(()).lowest_score("auto")


def test_scores_that_are_weighted_in_another_way_than_in_training_are_not_calibrated() -> None:
    step = Calibrate(scores=(0.0, 1.0), probabilities=(0.1, 0.9), f1_threshold=0.4)
    chain = Chain((Tail(tail_weight=0.5), step))
    assert chain.with_call(tail_weight=0.5).calibration == step
    assert chain.with_call(tail_weight=1.0).calibration is None


def test_calibration_needs_suggestions() -> None:
    with pytest.raises(DataError, match="got none"):
        fit_calibration(TopK.empty(2, 3), LabelMatrix.from_lists([[0], []], 3))


@pytest.mark.parametrize(
    "broken",
    [
        {"probabilities": [0.1]},
        {"scores": [1.0, 0.0]},
        {"probabilities": [0.1, 1.1]},
        {"scores": [], "probabilities": []},
        {"sets": {"thresholds": [0.1, 0.2], "precision": [0.5], "recall": [0.5, 0.2]}},
        {"recall": {"shares": [0.5, 0.4], "recall": [0.1, 0.2]}},
    ],
)
def test_a_saved_calibration_that_is_no_curve_is_refused(broken: dict[str, object]) -> None:
    plain = Calibrate(scores=(0.0, 1.0), probabilities=(0.1, 0.9), f1_threshold=0.4).plain()
    with pytest.raises(ConfigError, match="calibrate"):
        Chain.of([{**plain, **broken}])
