"""Integrated gradients: they add up to the logit's difference, or words are left out instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from longtail.data.dataset import Dataset
from longtail.explain.words import TextWords

torch = pytest.importorskip("torch")
pytest.importorskip("captum")

from longtail.methods import create_method  # noqa: E402
from longtail.nn.gradients import NO_LOGIT, integrated_gradients, words_of_tokens  # noqa: E402
from longtail.run.run import Run  # noqa: E402
from longtail.text.readings import TextReadings  # noqa: E402
from longtail.text.tokens import TokenOptions  # noqa: E402
from longtail.text.words import WordTokeniser  # noqa: E402

TEXT = "word1a noise2, word1b noise3"


@pytest.fixture(scope="module")
def model(tiny: Callable[..., Dataset], quick: Callable[..., dict[str, Any]]) -> Any:
    return create_method("xml-cnn", quick("xml-cnn")).fit(tiny().train)


def test_weights_add_up_to_what_the_words_change_in_the_logit(model: Any) -> None:
    label, network = 1, model.tagger_.network
    weights, why_not = integrated_gradients(
        model.tagger_, TextReadings.of([TEXT]), TextWords.of({"text": TEXT}), label, Run()
    )
    assert why_not == ""
    ids = torch.from_numpy(model.tagger_.tokens(TextReadings.of([TEXT]), Run()).ids.astype(np.int64))[None]
    with torch.no_grad():
        there, empty = (float(network.head.logit_of(network.encoder(some, None), label)) for some in (ids, ids * 0))
    assert weights.sum() == pytest.approx(there - empty, rel=0.05)
    assert np.argsort(-weights)[:2].tolist() in ([0, 2], [2, 0])


def test_the_logit_of_a_label_has_the_order_of_its_score(model: Any) -> None:
    text = TextReadings.of([TEXT])
    lists = model.tagger_.top_k(text, 8)
    ids = torch.from_numpy(model.tagger_.tokens(text, Run()).ids.astype(np.int64))[None]
    network = model.tagger_.network
    with torch.no_grad():
        vectors = network.encoder(ids, None)
        logits = [float(network.head.logit_of(vectors, label)) for label in lists.labels[0].tolist()]
    assert logits == sorted(logits, reverse=True)
    assert 1 / (1 + np.exp(-np.array(logits))) == pytest.approx(lists.scores[0], abs=1e-5)


def test_a_network_without_such_a_layer_says_so(
    tiny: Callable[..., Dataset], quick: Callable[..., dict[str, Any]]
) -> None:
    bag = create_method("fasttext", quick("fasttext")).fit(tiny().train)
    explanation = bag.explain(TEXT, "label1")
    assert (explanation.method, explanation.note) == ("occlusion", NO_LOGIT)
    assert explanation.top(1)[0].word.startswith("word1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's re-used, isn’t it?", ["it", "s", "re", "isn", "isn", "it"]),
        ("plain words", ["plain", "words"]),
    ],
)
def test_tokens_are_found_in_the_words_of_the_text(text: str, words: list[str]) -> None:
    tokeniser = WordTokeniser(["plain"], 100)
    text_words = TextWords.of({"text": text})
    table = pa.table({"text": [text]})
    of_tokens = words_of_tokens(text_words, table, tokeniser, TokenOptions())
    assert of_tokens is not None
    assert len(of_tokens) == len(tokeniser.encode([text])[0][0])
    assert [text_words.forms[word] for word in of_tokens if word >= 0] == words


def test_fields_are_told_apart_and_changed_texts_are_refused() -> None:
    fields = {"title": "plain words", "text": "other words"}
    tokeniser, words = WordTokeniser(["plain"], 100), TextWords.of(fields)
    table = pa.table({name: [text] for name, text in fields.items()})
    of_tokens = words_of_tokens(words, table, tokeniser, TokenOptions(columns=("text", "title")))
    assert of_tokens is not None
    assert [words.forms[word] for word in of_tokens] == ["other", "words", "plain", "words"]
    assert words_of_tokens(words, table, tokeniser, TokenOptions(max_words=2)) is None
    decomposed = {"text": "cafe\u0301"}
    table = pa.table({"text": [decomposed["text"]]})
    assert words_of_tokens(TextWords.of(decomposed), table, tokeniser, TokenOptions()) is None
