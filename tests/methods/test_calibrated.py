"""Scores of every kind of method as probabilities: which texts they are learned from, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError
from longtail.methods import create_method, load_model
from longtail.methods.base import Method
from longtail.methods.calibrated import Unseen
from longtail.methods.linear import Linear
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import TopK

WORDS: dict[str, Any] = {
    "encoder": {"vectors": {"width": 16}, "n_buckets": 50},
    "training": {"rate": 0.1, "head_rate": 2e-2, "epochs": 8, "batch_size": 16, "averaging": {"kind": "none"}},
}
CASES: dict[str, dict[str, Any]] = {
    "linear": {},
    "knn": {},
    "lexical": {},
    "fasttext": {**WORDS, "training": {**WORDS["training"], "validation": 0.1}},
}
Make = Callable[..., Method]


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=700, n_labels=12, named=True)


@pytest.fixture(scope="module", params=list(CASES))
def model(request: pytest.FixtureRequest, data: Dataset) -> Method:
    if request.param == "fasttext":
        pytest.importorskip("torch")
    return create_method(request.param, CASES[request.param]).fit(data.train)


def test_scores_are_probabilities_in_the_order_of_the_raw_scores(model: Method, data: Dataset) -> None:
    assert model.calibration is not None
    assert model.calibration.n_texts >= 50
    raw = create_method(model.name, CASES[model.name], {"calibrate": False}).fit(data.train)
    assert raw.calibration is None
    one, two = model.top_k(data.test, 4), raw.top_k(data.test, 4)
    assert one.labels.tolist() == two.labels.tolist()
    filled = one.labels >= 0
    assert ((one.scores[filled] >= 0) & (one.scores[filled] <= 1)).all()
    assert (one.scores[:, :-1] >= one.scores[:, 1:]).all()


def test_the_calibration_is_saved_with_the_model(model: Method, data: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m")
    assert opened.calibration == model.calibration
    one, two = opened.predict(data.test, threshold="auto"), model.predict(data.test, threshold="auto")
    assert one == two
    assert (one.predicted_recall, one.routes) == (two.predicted_recall, two.routes)
    assert opened.top_k(data.test, min_recall=0.5).labels.shape[0] == 700


def test_texts_that_are_easy_are_automatic(model: Method, data: Dataset) -> None:
    predictions = model.predict(data.test, 5)
    assert predictions.routes is not None
    assert predictions.predicted_recall is not None
    assert len(predictions.routes) == len(predictions.predicted_recall) == 700
    assert np.mean([route == "automatic" for route in predictions.routes]) > 0.8
    assert predictions[:3].routes == predictions.routes[:3]
    empty = model.predict([], 5)
    assert empty.routes == []


def test_uncalibrated_models_give_no_routes_and_know_no_threshold(data: Dataset) -> None:
    model = create_method("knn", {"calibrate": False}).fit(data.train)
    assert model.predict(data.test, 5).routes is None
    for call in ({"threshold": "auto"}, {"min_precision": 0.5}, {"min_recall": 0.5}):
        with pytest.raises(ConfigError, match="needs a model with calibrated scores"):
            model.top_k(data.test, **call)


def test_few_texts_are_not_enough_to_calibrate_with(tiny: Callable[..., Dataset]) -> None:
    assert create_method("linear").fit(tiny(n_texts=100).train).calibration is None


@pytest.mark.parametrize("name", ["linear", "knn", "lexical"])
def test_what_can_only_be_memorised_is_not_believed(name: str) -> None:
    """Each text has words of its own, and labels by chance: a model is sure of texts that it has seen."""
    rng = np.random.default_rng(0)
    texts = [f"only{number} here{number} {' '.join(rng.choice(list('abcdefgh'), 3))}" for number in range(600)]
    labels = [[f"label{one}"] for one in rng.integers(0, 20, 600)]
    predictions = create_method(name).fit(texts, labels).predict(texts[:200], 1)
    assert max([row[0].score for row in predictions if row], default=0) < 0.5


def test_networks_are_not_given_some_texts(tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    pytest.importorskip("torch")
    train = tiny(n_texts=1000, n_labels=12).train
    model = create_method("fasttext", WORDS).fit(train)
    assert model.calibration is not None
    assert (model.facts_["n_texts"], model.calibration.n_texts) == (950, 50)
    assert model.train_counts_.sum() < len(train.labels.indices)
    assert model.facts_["fingerprint"] == train.fingerprint
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").predict(train, 2) == model.predict(train, 2)
    assert create_method("fasttext", WORDS, {"calibrate": False}).fit(train).facts_["n_texts"] == 1000


def test_networks_that_hold_texts_out_anyway_are_calibrated_with_these(model: Method, data: Dataset) -> None:
    if model.name == "fasttext":
        assert model.facts_["n_texts"] == 700
        assert model.calibration is not None
        assert model.calibration.n_texts == 70


class Watched(Linear):
    """Remembers the texts that the second model is trained on, and those that it is asked about."""

    def _ask_second_model(self, split: Split, texts: TextReadings, asked: TextReadings, share: float, run: Run) -> TopK:
        self.train, self.asked = split.texts["text"].to_pylist(), asked.table["text"].to_pylist()
        assert share == 0.9
        return super()._ask_second_model(split, texts, asked, share, run)


def test_the_second_linear_model_has_not_seen_the_texts_that_it_is_asked_about(data: Dataset) -> None:
    model = Watched().fit(data.train)
    assert model.calibration is not None
    assert (len(model.train), len(model.asked), model.calibration.n_texts) == (630, 70, 70)
    assert not {*model.train} & {*model.asked}


class Asked(Linear):
    """Keeps what it says of unseen texts."""

    def _unseen(self, split: Split, texts: TextReadings, run: Run) -> Unseen | None:
        self.unseen, self.split = super()._unseen(split, texts, run), split
        return self.unseen


def test_labels_that_the_whole_model_knows_are_not_missed_for_the_threshold() -> None:
    """Eight of 808 assignments are of labels that occur once: so many of a text's labels are new to the whole model."""
    labels = [[f"l{row % 10}", *([f"once{row}"] if row % 100 == 0 else [])] for row in range(800)]
    model = Asked().fit(Split.of([f"w{row % 10} v{row}" for row in range(800)], labels))
    assert model.unseen is not None
    n_asked = len(model.unseen.rows)
    assert model.unseen.n_assigned == pytest.approx(n_asked / (1 - 8 / 808))
