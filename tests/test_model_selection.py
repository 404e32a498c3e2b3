"""Folds and scorers for scikit-learn's searches."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import longtail
from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, DataError


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=60, n_labels=6)


def test_every_text_is_tested_once_and_never_trained_on_at_the_same_time(data: Dataset) -> None:
    for texts in (data.train, list(range(60)), data.train.texts, np.arange(60)):
        folds = list(longtail.KFold(4).split(texts))
        assert sorted(row for _, test in folds for row in test.tolist()) == list(range(60))
        assert all(not set(train) & set(test) and len(train) + len(test) == 60 for train, test in folds)
    assert longtail.KFold(4).get_n_splits() == 4


def test_folds_are_drawn_by_a_seed_or_in_order() -> None:
    def tests(folds: longtail.KFold) -> list[list[int]]:
        return [test.tolist() for _, test in folds.split(range(6))]

    assert tests(longtail.KFold(3, seed=1)) == tests(longtail.KFold(3, seed=1)) != tests(longtail.KFold(3, seed=2))
    assert tests(longtail.KFold(3, shuffle=False)) == [[0, 1], [2, 3], [4, 5]]


def test_too_few_folds_or_texts_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2, got 1"):
        longtail.KFold(1)
    with pytest.raises(DataError, match="3 folds need at least as many texts, got 2"):
        list(longtail.KFold(3).split(["a", "b"]))


def test_label_lists_and_matrices_are_searched_with_scorer_and_folds(data: Dataset) -> None:
    texts, lists = zip(*((record["text"], record["labels"]) for record in data.train), strict=True)
    matrix = data.train.labels.to_scipy()
    scores = []
    for labels in (lists, matrix, matrix.toarray().astype(int)):
        search = GridSearchCV(
            longtail.Linear(), {"ranker__threshold": [0.02, 5.0]}, scoring=longtail.scorer("P@1"), cv=longtail.KFold(3)
        )
        search.fit(list(texts), labels)
        assert search.best_params_ == {"ranker__threshold": 0.02}
        scores.append(search.cv_results_["mean_test_score"].tolist())
    assert scores[0] == scores[1] == scores[2]


def test_a_rare_label_of_a_matrix_may_be_missing_in_a_fold(data: Dataset) -> None:
    texts = [*(record["text"] for record in data.train), "something rare"]
    matrix = np.zeros((61, 8), int)  # the last column is empty, the one before has one text
    matrix[:60, :6], matrix[60, 6] = data.train.labels.to_scipy().toarray(), 1
    found = cross_validate(longtail.KNN(), texts, matrix, cv=longtail.KFold(3), scoring=longtail.scorer("R@5"))
    assert found["test_score"].mean() > 0.8


def test_several_metrics_are_measured_of_pipelines_and_searches(data: Dataset) -> None:
    texts, lists = zip(*((record["text"], record["labels"]) for record in data.train), strict=True)
    metrics = {name: longtail.scorer(name) for name in ("nDCG@5", "P@1", "PSP@3", "R@10")}
    pipeline = Pipeline([("same", FunctionTransformer()), ("model", longtail.KNN())])
    for model in (longtail.KNN(), pipeline, Pipeline([("model", longtail.KNN())])):
        found = cross_validate(model, list(texts), list(lists), cv=longtail.KFold(2), scoring=metrics)
        assert all(0.5 < found[f"test_{name}"].mean() <= 1 for name in metrics)
    search = GridSearchCV(pipeline, {"model__power": [3.0]}, cv=2).fit(list(texts), list(lists))
    assert longtail.scorer("P@1")(search, texts, lists) == search.best_estimator_[-1].score(texts, lists, metric="P@1")


def test_a_scorer_has_a_metric_that_exists_and_can_be_sent_to_workers() -> None:
    with pytest.raises(ConfigError, match="unknown metric 'ndcg@5'; did you mean 'nDCG@5'"):
        longtail.scorer("ndcg@5")
    scorer = longtail.scorer("P@3")
    assert pickle.loads(pickle.dumps(scorer)) == scorer


def test_an_error_is_no_score() -> None:
    for metric in ("ECE@5", "Brier@1"):
        with pytest.raises(ConfigError, match="of which 0 is best"):
            longtail.scorer(metric)
