"""What stands in the base of all methods: the weight of rare labels."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data.dataset import Dataset
from longtail.evaluation import evaluate_model
from longtail.methods import create_method
from longtail.methods.base import Method

WEIGHTS = (0.0, 0.25, 0.5, 1.0, 2.0)


@pytest.fixture(scope="module")
def skewed() -> Dataset:
    """Eighty labels, the first in most texts, the last in a few, over forty words that several of them share."""
    rng = np.random.default_rng(1)
    share = 1 / np.arange(1, 81)
    made = {}
    for split, n in (("train", 900), ("test", 400)):
        rows = [sorted(set(rng.choice(80, 4, p=share / share.sum()).tolist())) for _ in range(n)]
        texts = [
            " ".join(f"word{(label + 7 * rng.integers(0, 3)) % 40}" for label in row for _ in range(2)) for row in rows
        ]
        made[split] = (texts, [[f"label{label:02}" for label in row] for row in rows])
    return Dataset.of(made, name="skewed")


@pytest.fixture(scope="module")
def model(skewed: Dataset) -> Method:
    return create_method("linear").fit(skewed.train)


def test_as_the_weight_grows_rare_labels_are_found_and_the_first_suggestion_is_less_often_right(
    model: Method, skewed: Dataset
) -> None:
    found = []
    for weight in WEIGHTS:
        model.tail_weight = weight
        found.append(evaluate_model(model, skewed.test).metrics)
    first = [metrics.values["P@1"] for metrics in found]
    assert first == sorted(first, reverse=True)
    assert first[-1] < first[0]
    weighed = [metrics.values["PSP@5"] for metrics in found]
    assert weighed == sorted(weighed)
    assert weighed[-1] > weighed[0]
    assert found[-1].bands["tail"]["R@5"] > found[0].bands["tail"]["R@5"]


def test_constants_are_those_of_the_data_that_a_model_was_trained_on(model: Method, skewed: Dataset) -> None:
    model.tail_weight = 1.0
    usual = model.top_k(skewed.test, 5)
    model.facts_["name"] = "attentionxml/amazon-670k"
    amazon = model.top_k(skewed.test, 5)
    del model.facts_["name"]
    assert not np.array_equal(usual.scores, amazon.scores)


def test_votes_by_place_keep_their_order_when_they_are_weighted(skewed: Dataset) -> None:
    model = create_method("linear", {"n_seeds": 2, "ensemble": {"vote": "rank"}}).fit(skewed.train)
    plain = model.top_k(skewed.test, 5)
    assert (np.diff(plain.scores, axis=1) < 0).mean() > 0.9  # and not all the same
    model.tail_weight = 1e-9
    assert np.array_equal(model.top_k(skewed.test, 5).labels, plain.labels)
