"""`longtail explain`: words, labels, pages, examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

TEXT = "word1a noise2 word1b <b> noise3"


@pytest.fixture
def explain(longtail: Callable[..., Ran], model: Path) -> Callable[..., Ran]:
    return lambda *arguments, **more: longtail("explain", model, *arguments, **more)


def test_the_best_label_is_explained(explain: Callable[..., Ran]) -> None:
    ran = explain(TEXT, "--quiet")
    assert ran.code == 0
    assert ran.out.startswith("label1: score 0.")
    assert "for it: word1" in ran.out


def test_as_many_labels_are_explained_as_asked_for(explain: Callable[..., Ran]) -> None:
    assert [one["label"] for one in explain(TEXT, "--json", "-l", "label3", "-l", "label1").json] == [
        "label3",
        "label1",
    ]
    assert len(explain(TEXT, "--json", "-k", "2").json) == 2


def test_a_text_comes_from_standard_input(explain: Callable[..., Ran]) -> None:
    assert explain("--json", stdin=b"word1a word1b").json[0]["fields"] == {"text": "word1a word1b"}


def test_the_page_escapes_the_text_and_marks_words(explain: Callable[..., Ran], tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    assert explain(TEXT, "--html", page, "--quiet").code == 0
    content = page.read_text()
    assert "&lt;b&gt;" in content
    assert "<b>" not in content
    assert '<mark class="for-4">word1' in content
    assert "http" not in content


def test_the_nearest_training_texts_carry_the_label(explain: Callable[..., Ran], data: Path) -> None:
    nearest = explain(TEXT, "--json", "--data", data, "-l", "label1").json[0]["nearest"]
    assert len(nearest) == 3
    assert all("word1" in example["text"] for example in nearest)
    assert nearest[0]["similarity"] >= nearest[1]["similarity"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((TEXT, "-l", "lable1"), "no label 'lable1'; did you mean 'label1'?"),
        ((TEXT, "-k", "0"), "k must be at least 1"),
        (("",), "needs a text with words, got an empty one"),
    ],
)
def test_bad_input_is_one_line(explain: Callable[..., Ran], arguments: tuple[str, ...], words: str) -> None:
    ran = explain(*arguments, "--quiet")
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
