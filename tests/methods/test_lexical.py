"""Labels by their names: also those without training texts, and no assignment explains itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import longtail
from longtail.data import load_dataset
from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.labels.name_ranker import right_matches
from longtail.methods.lexical import Lexical


@pytest.fixture(scope="module")
def some() -> Split:
    return load_dataset("debtags-sample").train.take(np.arange(600))


def test_labels_that_are_taken_out_of_the_training_texts_are_still_suggested(some: Split) -> None:
    full = Lexical().fit(some)
    matches = full.matches(some)
    hits = np.bincount(matches.labels[right_matches(matches, some.labels)], minlength=some.labels.n_labels)
    label = int(np.argmax(hits))
    keep = np.arange(some.labels.n_labels)
    keep[label] = -1
    without = replace(some, labels=some.labels.renumber(keep, len(keep)))
    model = Lexical().fit(without)
    assert model.train_counts_[label] == 0
    right = np.array([label in some.labels[row] for row in range(len(some))])
    suggested = (model.top_k(some, 10).labels == label).any(axis=1)
    assert suggested[right].sum() >= hits[label] / 2
    assert suggested[~right].mean() < suggested[right].mean() / 2


def test_a_label_is_no_likelier_in_its_only_text_than_a_label_without_texts() -> None:
    """Were counts those of all texts, a label's only text would always be right."""
    words = [f"name{number}" for number in range(60)]
    texts = [f"{first} {second}" for first in words[:30] for second in words[30:]]
    rng = np.random.default_rng(0)
    model = Lexical().fit(texts, [[text.split()[0]] if rng.random() < 0.5 else [] for text in texts])
    model.fit(texts, [[text.split()[0]] if i % 30 == i // 30 else [] for i, text in enumerate(texts)])
    assert (model.matches(texts).probabilities < 0.3).all()  # each label is right in one of its 30 texts


def test_scores_are_probabilities(some: Split) -> None:
    data = load_dataset("debtags-sample")
    model = Lexical().fit(data.train)
    matches = model.matches(data.test)
    right = right_matches(matches, data.test.labels)
    assert matches.probabilities is not None
    seen = model.train_counts_[matches.labels] > 0
    expected, observed = matches.probabilities[seen].mean(), right[seen].mean()
    assert 0.6 < expected / observed < 1.6


def test_matches_are_those_of_the_lists(some: Split) -> None:
    model = Lexical().fit(some)
    matches, lists = model.matches(some.take(np.arange(5))), model.top_k(some.take(np.arange(5)), 500)
    for row in range(5):
        span = slice(matches.indptr[row], matches.indptr[row + 1])
        assert matches.probabilities is not None
        expected = sorted(zip(-matches.probabilities[span], matches.labels[span], strict=True))
        n = len(expected)
        assert lists.labels[row, :n].tolist() == [label for _, label in expected]
        assert (lists.labels[row, n:] == -1).all()


def test_names_that_occur_nowhere_make_a_model_that_suggests_nothing() -> None:
    names = Vocabulary.of(["1", "2"], {"1": "apple", "2": "stone"})
    model = Lexical().fit(["red", "grey"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
    assert model.predict(["red", "an apple"], 2)[0] == []
    assert model.predict(["red", "an apple"], 2)[1][0].name == "apple"


def test_names_of_function_words_alone_make_a_model_that_suggests_nothing() -> None:
    names = Vocabulary.of(["1", "2"], {"1": "of the", "2": "and"})
    model = Lexical().fit(["red of the", "and grey"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
    assert model.predict(["of the and"], 2) == [[]]


def test_labels_without_names_are_refused_with_what_to_do() -> None:
    with pytest.raises(DataError, match="give a vocabulary with their names"):
        Lexical().fit(["red", "grey"] * 3, [["1"], ["2"]] * 3)


def test_texts_with_a_title_are_read_with_and_without_it() -> None:
    names = longtail.Vocabulary.of(["1", "2"], {"1": "apple", "2": "stone"})
    model = Lexical().fit(["apples", "stones"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
    assert model.columns == ("text",)
    assert model.optional_columns == ("title",)
    read = model.predict({"text": ["nothing"], "title": ["Apples"]}, 1)
    assert read[0][0].id == "1"
