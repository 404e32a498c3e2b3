from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from napkinxc.metrics import Jain_et_al_inverse_propensity

from longtail.errors import ConfigError, DataError
from longtail.propensity import USUAL, Propensity, inverse_propensity


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


def test_constants_must_be_positive() -> None:
    with pytest.raises(ConfigError, match=r"a must be greater than 0, got -1"):
        Propensity.of({"a": -1})


def test_no_training_text_is_an_error() -> None:
    with pytest.raises(DataError, match="n_train_texts must be at least 1, got 0"):
        inverse_propensity(np.array([0]), 0)
