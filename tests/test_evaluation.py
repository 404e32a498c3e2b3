"""A model on texts whose labels are known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.errors import DataError
from longtail.evaluation import SHOWN, choose_split, evaluate_model, occurs_in, truth_for
from longtail.methods import create_method
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions, MetricOptions


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny()


@pytest.fixture(scope="module")
def model(data: Dataset) -> Method:
    return create_method("linear").fit(data.train)


def test_labels_are_matched_by_id_and_unknown_ones_stand_behind(model: Method) -> None:
    split = Split.of(["a", "b"], [["label3", "new"], ["another", "label0"]])
    truth, vocabulary = truth_for(model.vocabulary_, split)
    assert vocabulary.ids[:8] == model.vocabulary_.ids
    assert sorted(vocabulary.ids[8:]) == ["another", "new"]
    assert [sorted(vocabulary.ids[label] for label in truth[row]) for row in (0, 1)] == [
        ["label3", "new"],
        ["another", "label0"],
    ]


def test_labels_that_the_model_knows_none_of_are_an_error_and_few_a_warning(
    model: Method, data: Dataset, caplog: pytest.LogCaptureFixture
) -> None:
    names = [["Label 3"], ["Label 4"]]
    message = r"got 2 of 2 labels of the texts, such as 'Label 3', 'Label 4', .*; labels that it learned are 'label0'"
    with pytest.raises(DataError, match=message):
        evaluate_model(model, Split.of(["a", "b"], names))
    with pytest.raises(DataError, match=message):
        model.score(["a", "b"], names)
    test_only = Dataset.of({"train": (["red apple", "grey stone"], [["x"], ["y"]]), "test": (["a"], [["z"]])})
    with pytest.raises(DataError, match="got 1 of 1 labels of the texts, such as 'z'"):
        evaluate_model(create_method("linear").fit(test_only.train), test_only.test)
    few = Split.of(["a", "b"], [*names[:1], ["Label 4", "label4"]])
    evaluate_model(model, few)
    assert "does not know 2 of 3 labels of the texts, such as 'Label 3', 'Label 4'" in caplog.text
    caplog.clear()
    evaluate_model(model, Split.of(["a", "b"], [["Label 3"], ["label4"]]))
    assert not caplog.text


def test_label_scores_count_true_suggested_and_right_texts(model: Method, data: Dataset) -> None:
    found = evaluate_model(model, data.test)
    scores = {score.label: score for score in found.label_scores()}
    for label in range(8):
        true = {row for row in range(len(data.test)) if label in found.truth[row]}
        suggested = {row for row in range(len(data.test)) if label in found.predicted.labels[row, :SHOWN]}
        score = scores[label]
        assert (score.n_true, score.n_predicted, score.n_right) == (len(true), len(suggested), len(true & suggested))
        assert score.f1 == pytest.approx(2 * len(true & suggested) / (len(true) + len(suggested)))
        assert score.n_train == model.train_counts_[label]


def test_metrics_without_seen_texts_are_those_of_the_others(model: Method, data: Dataset) -> None:
    seen = data.test.take(np.arange(10))
    found = evaluate_model(model, data.test, seen=seen)
    rest = evaluate_model(model, data.test.take(~occurs_in(data.test, seen)))
    assert found.new is not None
    assert found.new.values == rest.metrics.values
    assert occurs_in(data.test, seen)[:10].all()
    with pytest.raises(DataError, match="all 60 texts occur word for word"):
        evaluate_model(model, data.test, seen=data.test)


def test_plain_data_hold_what_was_asked_for(model: Method, data: Dataset) -> None:
    options, few = MetricOptions(at=(1, 2)), BootstrapOptions(n_resamples=20)
    plain = evaluate_model(model, data.test, options, bootstrap=few, seen=data.train).plain()
    assert plain["intervals"]["metrics"]["P@2"]["value"] == pytest.approx(plain["metrics"]["P@2"])
    assert plain["intervals"]["bootstrap"]["n_resamples"] == 20
    assert plain["without_seen_texts"]["n_texts"] <= plain["n_texts"]
    assert "intervals" not in evaluate_model(model, data.test, options).plain()


def test_dev_is_chosen_then_what_was_held_out_then_the_only_part(data: Dataset, tiny: Callable[..., Dataset]) -> None:
    with_dev = tiny(splits=("train", "dev"))
    model = create_method("linear").fit(with_dev.train)
    assert choose_split(model, with_dev) == ("dev", with_dev.dev)
    assert choose_split(model, with_dev, "train") == ("train", with_dev.train)
    only = tiny(seed=1, splits=("test",))
    assert choose_split(model, only) == ("test", only.test)
    with pytest.raises(DataError, match="has no dev part"):
        choose_split(model, data)
    with pytest.raises(DataError, match="has no split 'tset'"):
        choose_split(model, data, "tset")


def test_the_held_out_part_is_drawn_again(tiny: Callable[..., Dataset]) -> None:
    data = tiny(splits=("train",))
    drawn = data.hold_out(share=0.2, seed=3)
    model = create_method("linear").fit(drawn.train)
    with pytest.raises(DataError, match="without `hold_out`"):
        choose_split(model, data, "dev")
    model.facts_["held_out"] = drawn.facts["held_out"]
    name, split = choose_split(model, data)
    assert name == "dev (held out)"
    assert split.fingerprint == drawn.dev.fingerprint
    with pytest.raises(DataError, match="not known which texts"):
        choose_split(model, tiny(seed=1, splits=("train",)), "dev")
