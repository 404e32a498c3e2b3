from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from napkinxc.metrics import Jain_et_al_inverse_propensity

from longtail.errors import ConfigError, DataError
from longtail.propensity import USUAL, Propensity, inverse_propensity, propensities_of


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
