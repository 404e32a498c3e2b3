from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.native.beam import keep_best
from longtail.kernels.reference.beam import log_score


@settings(max_examples=30)
@given(st.permutations(range(12)), st.integers(1, 14), st.sampled_from([0, 3]))
def test_children_of_the_same_score_are_kept_by_their_number(children: list[int], k: int, power: int) -> None:
    """Two clusters of six children each, all with the same score."""
    best, scores = np.zeros((1, k), np.int32), np.zeros((1, k), np.float32)
    keep_best(
        np.array([[0, 1]], np.int32), np.full((1, 2), -0.5, np.float32), np.array([[0, 6]]), np.array([0, 6, 12]),
        np.array(children, np.int32), np.full(12, 0.25, np.float32), np.float32(1), power, best, scores,
    )  # fmt: skip
    assert best[0].tolist() == [*range(12), -1, -1][:k]


@pytest.mark.parametrize("power", [0, 1, 2, 3, 4, 8])
def test_scores_are_below_zero_and_grow_with_the_margin(power: int) -> None:
    margins = np.linspace(-8, 12, 500)
    scores = log_score(margins, power)
    assert (scores < 0).all()
    assert (np.diff(scores) > 0).all()  # also where the hinge is flat


@pytest.mark.parametrize(("power", "margin", "expected"), [(2, 0.0, -1.0), (3, -1.0, -8.0), (0, 0.0, np.log(0.5))])
def test_scores_are_those_of_the_formulas(power: int, margin: float, expected: float) -> None:
    assert log_score(margin, power) == pytest.approx(expected, abs=1e-4)
