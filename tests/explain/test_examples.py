"""The nearest training texts that carry a label, and what an explanation is as plain data."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

import longtail
from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError, DataError
from longtail.explain.occlusion import both_ways
from longtail.explain.words import TextWords
from longtail.text.readings import TextReadings
from longtail.types import TopK

TEXTS = ["a red apple", "red pears and an apple", "a grey stone and pears", "red grey stone"]
LABELS = [["fruit"], ["fruit", "red"], ["rock"], ["rock", "red"]]


@pytest.fixture(scope="module")
def examples() -> longtail.ExampleTexts:
    return longtail.ExampleTexts.of(Split.of(TEXTS, LABELS))


def test_the_nearest_examples_carry_the_label(examples: longtail.ExampleTexts) -> None:
    nearest = examples.nearest({"text": "red apple"}, "fruit", 5)
    assert [one.text for one in nearest] == ["a red apple", "red pears and an apple"]
    assert nearest[0].similarity > nearest[1].similarity > 0
    assert [one.text_number for one in examples.nearest({"text": "red"}, "rock", 1)] == [3]
    assert examples.nearest({"text": "red apple"}, "no label") == ()


def test_a_model_shows_them_beside_its_words(examples: longtail.ExampleTexts) -> None:
    model = longtail.Linear(calibrate=False).fit(TEXTS * 3, LABELS * 3)
    explanation = model.explain({"text": "a red apple"}, "fruit", examples=examples, n_examples=1)
    assert [one.text for one in explanation.nearest] == ["a red apple"]
    assert json.loads(json.dumps(explanation.to_dict()))["nearest"][0]["text_number"] == 0
    assert [explanation.fields[field][start:end] for field, start, end, _ in explanation.highlights()]
    assert max(abs(weight) for *_, weight in explanation.highlights()) == 1


def test_labels_are_named_by_id_or_name_and_errors_name_the_next_step(tiny: Callable[..., Dataset]) -> None:
    model = longtail.Linear(calibrate=False).fit(tiny(named=True).train)
    assert model.explain("word1a", "word1a").label == "label1"
    with pytest.raises(ConfigError, match="no label 'lable1'; did you mean 'label1'"):
        model.explain("word1a", "lable1")
    with pytest.raises(DataError, match="needs a text with words"):
        model.explain("", "label1")


def test_two_labels_of_one_name_must_be_told_by_id() -> None:
    names = longtail.Vocabulary.of(["1", "2"], {"1": "bank", "2": "bank"})
    model = longtail.Linear(calibrate=False).fit(["river", "money"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
    assert model.explain("river", "1").label == "1"
    with pytest.raises(ConfigError, match="named by its id where several are called 'bank', such as 1, 2"):
        model.explain("river", "bank")


def test_a_label_without_training_texts_is_said_to_be_none_of_the_methods() -> None:
    names = longtail.Vocabulary.of(["1", "2", "3"])
    model = longtail.Linear(calibrate=False).fit(["river", "money"] * 3, [["1"], ["2"]] * 3, vocabulary=names)
    explanation = model.explain("river", "3")
    assert explanation.words == ()
    assert "no training texts" in explanation.note


def test_a_lexical_model_names_the_matched_name_and_its_words() -> None:
    names = longtail.Vocabulary.of(["1", "2"], {"1": "stone fruit", "2": "rock"}, alternatives={"1": ["plums"]})
    texts = ["stone fruits are sweet", "a grey rock", "plums and rocks", "no name"] * 5
    model = longtail.Lexical(calibrate=False).fit(texts, [["1"], ["2"], ["1", "2"], []] * 5, vocabulary=names)
    explanation = model.explain("the plum is no stone fruit of ours", "1")
    assert explanation.names == ("stone fruit",)
    assert explanation.top(1)[0].word == "plum"  # with it alone, the label is still found
    alone = model.explain("no stone fruit of ours", "1")
    assert {word.word for word in alone.words} == {"stone", "fruit"}


def test_words_that_stand_in_for_each_other_share_the_weight() -> None:
    words = TextWords.of({"text": "one two three"})

    def ask(texts: TextReadings, n: int) -> TopK:
        has = [0.9 if {"one", "two"} & set(text.split()) else 0.1 for text in texts.table["text"].to_pylist()]
        return TopK(np.zeros((len(has), 1), np.int32), np.array(has, np.float32)[:, None])

    weights = both_ways(words, [[0], [1]], 0, 1, ask)
    assert weights[0] == weights[1] > 1
    assert weights[2] == 0
