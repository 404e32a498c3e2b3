"""The interface of scikit-learn: parameters, searches, pipelines, probabilities, copies and what notebooks show."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as TheirNotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import longtail
from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError, DataError, NotFittedError
from longtail.linear.ranker import RankerOptions
from longtail.methods import create_method, load_model


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=60, n_labels=6)


@pytest.fixture(scope="module")
def texts(data: Dataset) -> list[str]:
    return [record["text"] for record in data.train]


@pytest.fixture(scope="module")
def lists(data: Dataset) -> list[list[str]]:
    return [record["labels"] for record in data.train]


@pytest.fixture(scope="module")
def model(data: Dataset) -> longtail.Linear:
    return longtail.Linear(ranker={"threshold": 0.02}).fit(data.train)


def test_params_are_the_preset_and_the_options_given_with_it() -> None:
    model = longtail.Linear("linear/parabel", n_seeds=2, ranker={"threshold": 0.1})
    assert model.get_params(deep=False) == {"preset": "linear/parabel", "n_seeds": 2, "ranker": {"threshold": 0.1}}
    assert model.get_params() == {**model.get_params(deep=False), "ranker__threshold": 0.1}
    assert longtail.Linear().get_params() == {"preset": None}
    whole = longtail.Linear(ranker=RankerOptions(threshold=0.1))
    assert whole.get_params()["ranker__threshold"] == 0.1


def test_a_clone_has_the_same_params_and_options_and_is_not_trained(model: longtail.Linear) -> None:
    for original in (model, longtail.Linear("linear/parabel", n_seeds=2, ranker=RankerOptions(threshold=0.1))):
        copied = clone(original)
        assert copied.get_params() == original.get_params()
        assert copied.options == original.options
        assert not copied.__sklearn_is_fitted__()


def test_params_are_set_by_nested_name() -> None:
    model = longtail.Linear("linear/parabel", ranker={"threshold": 0.1})
    assert model.set_params(ranker__bias=2.0, n_seeds=3) is model
    assert model.get_params(deep=False)["ranker"] == {"threshold": 0.1, "bias": 2.0}
    assert (model.options.ranker.threshold, model.options.ranker.bias, model.options.n_seeds) == (0.1, 2.0, 3)
    assert model.options == longtail.Linear("linear/parabel", n_seeds=3, ranker=dict(threshold=0.1, bias=2.0)).options
    model.set_params(ranker={"bias": 3.0}, ranker__threshold=0.2)  # a whole group first
    assert model.get_params(deep=False)["ranker"] == {"bias": 3.0, "threshold": 0.2}
    assert model.set_params(preset=None).options.tree == longtail.Linear().options.tree
    assert longtail.Linear().set_params(features__blocks__1__weight=0.5).options.features.blocks[1].weight == 0.5
    assert longtail.Linear(ranker=RankerOptions(bias=2.0)).set_params(ranker__threshold=0.3).options.ranker.bias == 2.0


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_sedes": 3}, "unknown option 'n_sedes'; did you mean 'n_seeds'"),
        ({"ranker__treshold": 3}, r"unknown option 'ranker.treshold'; did you mean 'threshold'"),
        ({"ranker__threshold": -1}, "ranker.threshold must"),
        ({"preset": "linear/no"}, "unknown preset"),
        ({"preset": "knn/words"}, "preset must be one of linear .* got 'knn/words'"),
        ({"preset": {"n_seeds": 2}}, "preset must be .* options are given by name"),
    ],
)
def test_wrong_params_are_refused_and_change_nothing(params: dict[str, Any], message: str) -> None:
    model = longtail.Linear(n_seeds=2)
    before = model.get_params(), model.options
    with pytest.raises(ConfigError, match=message):
        model.set_params(**params)
    assert (model.get_params(), model.options) == before


def test_a_trained_model_keeps_its_options_until_it_is_trained_again(data: Dataset, tmp_path: Path) -> None:
    model = longtail.Linear().fit(data.train)
    before = model.top_k(data.test, 6)
    model.set_params(n_seeds=2)
    assert model.options.n_seeds == 1
    assert np.array_equal(model.top_k(data.test, 6).scores, before.scores)
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").options.n_seeds == 1
    assert model.fit(data.train).options.n_seeds == 2


def test_a_model_by_name_and_a_loaded_one_have_short_params(data: Dataset, tmp_path: Path) -> None:
    made = create_method("linear/parabel", {"n_seeds": 2})
    assert repr(made) == "Linear('linear/parabel', n_seeds=2)"
    made.fit(data.train).save(tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert clone(loaded).options == loaded.options == made.options
    assert len(repr(loaded)) < 400
    assert repr(longtail.KNN.from_options(longtail.KNN().options.plain())) == "KNN()"


def test_the_signature_shows_the_options() -> None:
    parameters = inspect.signature(longtail.Linear).parameters
    assert list(parameters) == ["preset", *longtail.Linear.options_class.model_fields]
    assert parameters["n_seeds"].default == 1
    assert parameters["n_seeds"].kind is inspect.Parameter.KEYWORD_ONLY
    assert list(inspect.signature(longtail.Method).parameters) == ["preset", "options"]


def test_a_grid_is_searched_over_nested_options(texts: list[str], lists: list[list[str]], data: Dataset) -> None:
    grid = {"ranker__threshold": [0.01, 5.0]}
    by_lists = GridSearchCV(longtail.Linear(), grid, cv=3).fit(texts, lists)
    assert by_lists.best_params_ == {"ranker__threshold": 0.01}
    assert by_lists.best_estimator_.options.ranker.threshold == 0.01
    assert by_lists.best_score_ > 0.8
    matrix = data.train.labels.to_scipy()
    for labels in (matrix, matrix.toarray().astype(bool)):
        by_matrix = GridSearchCV(longtail.Linear(), grid, cv=3).fit(texts, labels)
        assert by_matrix.best_score_ == pytest.approx(by_lists.best_score_)
    by_split = GridSearchCV(longtail.Linear(), grid, cv=3).fit(data.train)
    assert by_split.best_score_ == pytest.approx(by_lists.best_score_)
    assert by_split.predict(texts[:2]) == by_lists.predict(texts[:2])


def test_tables_go_through_cross_validation(texts: list[str], lists: list[list[str]]) -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    expected = cross_val_score(longtail.KNN(), texts, lists, cv=3)
    for frame in (pd.DataFrame({"text": texts}), pl.DataFrame({"text": texts})):
        assert cross_val_score(longtail.KNN(), frame, lists, cv=3) == pytest.approx(expected)
    frame = pd.DataFrame({"text": texts, "labels": lists})
    assert cross_val_score(longtail.KNN(), frame, frame["labels"], cv=3) == pytest.approx(expected)
    assert cross_val_score(longtail.KNN(), frame, cv=3) == pytest.approx(expected)


def test_a_pipeline_ends_in_a_model(texts: list[str], lists: list[list[str]]) -> None:
    steps = [("upper", FunctionTransformer(_upper)), ("model", longtail.Linear())]
    assert "Linear()" in repr(Pipeline(steps))
    pipeline = Pipeline(steps).set_params(model__ranker__threshold=0.02).fit(texts, lists)
    plain = longtail.Linear(ranker={"threshold": 0.02}).fit(_upper(texts), lists)
    assert pipeline.predict(texts, k=3) == plain.predict(_upper(texts), k=3)
    assert pipeline.score(texts, lists) == plain.score(_upper(texts), lists)
    assert pipeline.classes_.tolist() == plain.classes_.tolist()
    assert pipeline.predict_proba(texts).shape == (60, 6)
    search = GridSearchCV(Pipeline(steps), {"model__ranker__threshold": [0.02, 5.0]}, cv=3).fit(texts, lists)
    assert search.best_params_ == {"model__ranker__threshold": 0.02}
    assert "Linear" in search._repr_html_()


def _upper(texts: list[str]) -> list[str]:
    return [text.upper() for text in texts]


def test_probabilities_are_the_scores_of_the_best_labels(model: longtail.Linear, data: Dataset) -> None:
    scores = model.predict_proba(data.test)
    assert sp.issparse(scores)
    assert scores.shape == (60, 6)
    assert scores.dtype == np.float32
    assert model.classes_.dtype == object
    assert model.classes_.tolist() == model.vocabulary_.ids
    few = model.predict_proba(data.test, k=2)
    assert few.getnnz(axis=1).tolist() == [2] * 60
    for row, suggestions in enumerate(model.predict(data.test, k=2)):
        for label in suggestions:
            column = model.classes_.tolist().index(label.id)
            assert few[row, column] == scores[row, column] == np.float32(label.score)


def test_the_score_is_ndcg_at_5_or_the_metric_asked_for(model: longtail.Linear, data: Dataset) -> None:
    found = longtail.evaluate_model(model, data.test).metrics.values
    assert model.score(data.test) == found["nDCG@5"]
    texts, lists = zip(*((record["text"], record["labels"]) for record in data.test), strict=True)
    assert model.score(texts, lists, metric="P@1") == found["P@1"]
    assert model.score(list(texts), data.test.labels.to_scipy(), metric="PSP@3") == found["PSP@3"]
    with pytest.raises(ConfigError, match="unknown metric 'nDGC@5'; did you mean 'nDCG@5'"):
        model.score(data.test, metric="nDGC@5")
    with pytest.raises(DataError, match="labels of the texts"):
        model.score(list(texts))


def test_labels_that_the_model_does_not_know_are_missed(model: longtail.Linear) -> None:
    known = model.score(["word1a word1b word1c"], [["label1"]], metric="R@5")
    assert model.score(["word1a word1b word1c"], [["label1", "new"]], metric="R@5") == known / 2


def test_what_is_not_trained_says_so_to_longtail_and_to_scikit_learn() -> None:
    for use in ("predict", "predict_proba", "score"):
        with pytest.raises(NotFittedError, match="not trained") as raised:
            getattr(longtail.Linear(), use)(["a"])
        assert isinstance(raised.value, TheirNotFittedError)
    assert not hasattr(longtail.Linear(), "classes_")


def test_copies_of_a_model_are_independent_and_give_the_same(data: Dataset) -> None:
    model = longtail.Linear(ranker={"threshold": 0.02}).fit(data.train)
    expected = model.predict(data.test)
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)]
    model.fit(["red apple", "grey stone"] * 3, [["a"], ["b"]] * 3)
    for copied in copies:
        assert copied.predict(data.test) == expected
        assert copied.get_params() == model.get_params()
        assert pickle.loads(pickle.dumps(copied)).predict(data.test) == expected
    empty = pickle.loads(pickle.dumps(longtail.Linear("linear/parabel", n_seeds=2)))
    assert repr(empty) == "Linear('linear/parabel', n_seeds=2)"
    assert not empty.__sklearn_is_fitted__()


def test_params_set_after_training_travel_with_a_copy(data: Dataset) -> None:
    model = longtail.Linear().fit(data.train).set_params(n_seeds=2)
    copied = pickle.loads(pickle.dumps(model))
    assert (copied.options.n_seeds, copied.get_params()["n_seeds"]) == (1, 2)
    assert copied.fit(data.train).options.n_seeds == 2


def test_notebooks_show_a_short_escaped_table(model: longtail.Linear) -> None:
    assert repr(longtail.Linear(features={"blocks": [{"column": "x" * 500}]})).endswith("…)")
    page = model._repr_html_()
    assert "60 texts, 6 labels" in page
    assert "not trained" in longtail.Linear()._repr_html_()
    assert "<b>" not in longtail.Linear(features={"blocks": [{"column": "<b>"}]})._repr_html_()


@pytest.mark.slow
def test_a_grid_is_searched_by_several_processes(texts: list[str], lists: list[list[str]]) -> None:
    search = GridSearchCV(longtail.KNN(), {"power": [1.0, 3.0]}, cv=2, n_jobs=2).fit(texts, lists)
    assert search.best_score_ > 0.5


def test_a_model_is_used_without_scikit_learn() -> None:
    code = (
        "import sys, longtail\n"
        "model = longtail.KNN().fit(['red apple', 'grey stone'] * 3, [['a'], ['b']] * 3)\n"
        "model.predict(['apple']); model.get_params(); model.set_params(power=1.0); repr(model)\n"
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_options_are_mappings_or_options_objects(data: Dataset) -> None:
    as_mapping = longtail.Linear(ranker={"threshold": 0.02})
    as_object = longtail.Linear(ranker=RankerOptions(threshold=0.02))
    split: Split = data.train
    assert as_mapping.options == as_object.options
    assert as_object.fit(split).predict(data.test) == as_mapping.fit(split).predict(data.test)
