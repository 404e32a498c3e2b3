"""`longtail review`, and reviews as data of other commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.load import load_dataset

pytest.importorskip("sqlalchemy", reason="needs pip install 'longtail[review]'")

from longtail.review.adding import find_queue
from longtail.review.desk import Decision, Shown, claim, decide
from longtail.review.store import ReviewStore
from tests.cli.conftest import words_of

Run = Callable[..., Any]


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    return tmp_path / "reviews.db"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A table of ten texts, numbered, with words of the labels of `tiny`."""
    rows = [f"{number},Title {number},{words_of(number % 4)}" for number in range(10)]
    (tmp_path / "new.csv").write_text("\n".join(["id,title,text", *rows]) + "\n")
    return tmp_path / "new.csv"


def accept_all(reviews: Path, labels: Callable[[int], list[str]]) -> None:
    with ReviewStore.open(reviews) as store:
        queue = find_queue(store, "news")
        while (text := claim(store, queue, "ada")) is not None:
            shown = (Shown("label0", 0.75, True),)
            decide(store, Decision(f"k{text.id}", text.id, "ada", tuple(labels(int(text.fields["id"]))), shown))


def test_texts_are_added_listed_decided_on_and_exported(
    longtail: Run, reviews: Path, texts: Path, tmp_path: Path
) -> None:
    ran = longtail("review", "add", "news", texts, "--reviews", reviews, "--overlap", "0")
    assert (ran.code, ran.out) == (0, "news: 10 texts added\n")
    assert f"longtail serve MODEL --reviews {reviews} shows them" in ran.err
    assert "0 texts added; 10 were there already" in longtail("review", "add", "news", texts, "-r", reviews).out
    [row] = longtail("review", "list", "-r", reviews, "--json").json
    assert (row["queue"], row["texts"], row["waiting"], row["per_text"]) == ("news", 10, 10, 1)
    assert "news" in longtail("review", "list", "-r", reviews).out
    accept_all(reviews, lambda number: [f"label{number % 4}"])
    stats = longtail("review", "stats", "news", "-r", reviews)
    assert "By rank" in stats.out
    assert longtail("review", "stats", "news", "-r", reviews, "--json").json["acceptance"]["texts"] == 10
    ran = longtail("review", "export", "-r", reviews, "-o", tmp_path / "out.csv")
    assert (ran.code, ran.err) == (0, f"{tmp_path / 'out.csv'}: 10 texts written\n")
    data = load_dataset(tmp_path / "out.csv")
    assert data.train[3]["title"] == "Title 3"
    assert data.train[3]["labels"] == ["label3"]
    for kind in ("annif", "log"):
        assert longtail("review", "export", "-r", reviews, "-o", tmp_path / "out.x", "--as", kind).code == 0
        assert (tmp_path / "out.x").read_text().count("\n") == 10


def test_a_folder_of_documents_becomes_a_queue(longtail: Run, reviews: Path, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "one.txt").write_text("some text")
    assert "1 texts added" in longtail("review", "add", "news", tmp_path / "in", "-r", reviews).out
    with ReviewStore.open(reviews) as store:
        text = claim(store, find_queue(store, "news"), "ada")
        assert text is not None
        assert text.fields == {"id": "one.txt", "text": "some text"}
    (tmp_path / "empty").mkdir()
    ran = longtail("review", "add", "news", tmp_path / "empty", "-r", reviews)
    assert ran.code == 2
    assert "must hold documents (.txt, .pdf, .docx, .epub, .html), found none" in ran.err


def test_uncertain_texts_come_first_as_a_model_sees_them(
    longtail: Run, reviews: Path, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "new.txt").write_text(f"{words_of(1)} {words_of(1)}\nnoise1 noise2 noise3 word1a\n")
    command = ("review", "add", "news", tmp_path / "new.txt", "-r", reviews, "--order", "uncertain")
    ran = longtail(*command)
    assert ran.code == 2
    assert "--order uncertain needs a --model that tells which texts are uncertain" in ran.err
    assert longtail(*command, "--model", model).code == 0
    with ReviewStore.open(reviews) as store:
        text = claim(store, find_queue(store, "news"), "ada")
        assert text is not None
        assert text.fields["text"].startswith("noise1")


def test_a_model_is_trained_on_reviews_with_the_archive_and_measured_on_reviews(
    longtail: Run, reviews: Path, texts: Path, data: Path, tmp_path: Path
) -> None:
    longtail("review", "add", "news", texts, "-r", reviews)
    accept_all(reviews, lambda number: [f"label{number % 4}"])
    out = tmp_path / "model2"
    ran = longtail("train", reviews, "--add", data, "--out", out, "--json")
    assert ran.code == 0
    assert ran.json["n_texts"] == 70
    old = tmp_path / "old"
    assert longtail("train", data, "--out", old).code == 0
    measured = longtail("evaluate", old, reviews, "--json")
    assert measured.code == 0
    assert measured.json["n_texts"] == 10
    assert measured.json["metrics"]["P@1"] > 0.9
    assert longtail("data", "check", reviews).code in (0, 1)


def test_options_go_to_the_source_that_has_them_and_no_option_vanishes(
    longtail: Run, reviews: Path, texts: Path, tmp_path: Path
) -> None:
    longtail("review", "add", "news", texts, "-r", reviews)
    accept_all(reviews, lambda number: [f"label{number % 4}"])
    (tmp_path / "old.csv").write_text("body,tags\nword5a word5b,label5\nword6a,label6\n")
    command = ("train", reviews, "--add", tmp_path / "old.csv", "--out", tmp_path / "m", "--json")
    columns = ("--text-column", "body", "--label-column", "tags")
    assert longtail(*command, *columns, "--read", "agree=all").json["n_texts"] == 12
    ran = longtail(*command, *columns, "--read", "agrees=all")
    assert ran.code == 2
    assert "unknown option 'agrees'; did you mean 'agree'?" in ran.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("list", "-r", "none.db"), "there is no review store none.db"),
        (("add", "a/b", "new.csv"), "must be 1 to 100 visible characters without '/'"),
        (("add", "news", "none.csv"), "there is no file or folder none.csv"),
        (("add", "news", "new.csv", "--per-text", "0"), "per_text must be greater than or equal to 1, got 0"),
        (("export", "-o", "x.csv", "--as", "xml", "-r", "{reviews}"), "--as must be data, annif or log, got 'xml'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    longtail: Run, reviews: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: tuple[str, ...], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").write_text("text\na text\n")
    ReviewStore.open(reviews).close()
    ran = longtail("review", *(word.format(reviews=reviews) for word in command))
    assert ran.code == 2
    assert words in ran.err
    assert ran.err.count("\n") == 1
