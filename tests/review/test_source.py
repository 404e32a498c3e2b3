"""Decisions as a data set, and as files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from longtail.data.dataset import Dataset
from longtail.data.load import load_dataset
from longtail.errors import ConfigError, DataError
from longtail.evaluation import choose_split, evaluate_model
from longtail.methods import create_method
from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.desk import Decision, Shown, claim, decide, undo
from longtail.review.export import write_annif, write_log, write_reviews
from longtail.review.store import ReviewStore


def fill(address: str) -> None:
    """Two people on two texts of one queue, one person on a text of another."""
    with ReviewStore.open(address) as store:
        news = make_queue(store, "news", {"per_text": 2})
        add_texts(store, news, [Record({"text": "=first", "title": "T"}), Record({"text": "second\ttext"})])
        opinions = {"ada": ("x y", "y"), "bob": ("x", "z"), "cyd": ("x", "y z")}
        for when, (person, labels) in enumerate(opinions.items()):
            for number in range(2):
                decision = Decision(
                    f"{person}{number}",
                    number + 1,
                    person,
                    tuple(labels[number].split()),
                    (Shown("x", 0.5, True, "X"),),
                )
                decide(store, decision, now=1000.0 + when)
        books = make_queue(store, "books")
        add_texts(store, books, [Record({"text": "third"})])
        text = claim(store, books, "ada")
        assert text is not None
        decide(store, Decision("b", text.id, "ada", ("w",)))


@pytest.fixture
def filled(address: str) -> str:
    fill(address)
    return address


def labels_of(data: Dataset) -> dict[str, list[str]]:
    return {record["text"]: record["labels"] for record in data.train}


def test_decisions_are_a_data_set_with_the_fields_and_names_of_what_was_reviewed(filled: str) -> None:
    data = load_dataset(filled)
    assert labels_of(data) == {"=first": ["x"], "second\ttext": ["y", "z"], "third": ["w"]}
    assert data.train.texts["title"].to_pylist() == ["T", "", ""]
    assert data.vocabulary.ids == ["w", "x", "y", "z"]
    assert data.vocabulary.name_of("x") == "X"


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [("half", "x", "y z"), ("all", "x", ""), ("any", "x y", "y z"), ("last", "x", "y z")],
)
def test_where_people_disagree_a_rule_decides(filled: str, rule: str, first: str, second: str) -> None:
    data = load_dataset(filled, queue="news", agree=rule)
    assert labels_of(data) == {"=first": first.split(), "second\ttext": second.split()}


def test_what_was_undone_or_skipped_is_not_read(filled: str) -> None:
    with ReviewStore.open(filled) as store:
        undo(store, make_queue(store, "books"), "ada", "u")
    assert "third" not in labels_of(load_dataset(filled))


def test_an_empty_store_an_unknown_queue_and_an_unknown_rule_are_one_line(tmp_path: Path) -> None:
    ReviewStore.open(tmp_path / "reviews.db").close()
    with pytest.raises(DataError, match=r"reviews.db must hold decisions, it has none yet"):
        load_dataset(tmp_path / "reviews.db")
    with pytest.raises(DataError, match="has no queue 'news'"):
        load_dataset(tmp_path / "reviews.db", queue="news")
    with pytest.raises(ConfigError, match="agree must be 'half', 'all', 'any' or 'last'"):
        load_dataset(tmp_path / "reviews.db", agree="most")


def test_the_password_of_a_database_is_kept_nowhere(filled: str) -> None:
    if not filled.startswith("postgresql"):
        pytest.skip("files have no password")
    data = load_dataset(filled.replace("tests@", "tests:secret@"))
    assert "secret" not in json.dumps(dict(data.facts))


def test_a_model_learns_from_decisions_and_is_measured_on_them(tmp_path: Path, tiny: Callable[..., Dataset]) -> None:
    data, address = tiny(n_texts=60), tmp_path / "reviews.db"
    with ReviewStore.open(address) as store:
        queue = make_queue(store, "tiny")
        add_texts(store, queue, [Record({"text": record["text"]}) for record in data.train])
        for number, record in enumerate(data.train):
            decide(store, Decision(f"k{number}", number + 1, "ada", tuple(record["labels"])))
    model = create_method("linear").fit(load_dataset(address).train)
    assert evaluate_model(model, data.test).metrics.values["P@1"] > 0.9
    other = create_method("linear").fit(data.test)
    name, texts = choose_split(other, load_dataset(address))
    assert (name, len(texts)) == ("train", 60)
    assert evaluate_model(other, texts).metrics.values["P@1"] > 0.9


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_exported_files_read_back_as_what_was_decided(filled: str, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"reviews{suffix}"
    assert write_reviews(filled, out, queue="news") == 2
    data = load_dataset(out)
    assert labels_of(data) == {"=first": ["x"], "second\ttext": ["y", "z"]}
    assert data.train.texts["reviewed_by"].to_pylist() == ["ada, bob, cyd"] * 2
    assert data.train.texts["reviewed_at"].to_pylist() == ["1970-01-01T00:16:42Z"] * 2


def test_a_corpus_for_annif_has_a_text_and_its_labels_per_line(filled: str, tmp_path: Path) -> None:
    assert write_annif(filled, tmp_path / "a.tsv", queue="news") == 2
    assert (tmp_path / "a.tsv").read_text() == "T =first\t<x>\nsecond text\t<y> <z>\n"


def test_labels_that_annif_could_not_read_are_refused(sqlite: ReviewStore, tmp_path: Path) -> None:
    queue = make_queue(sqlite, "news")
    add_texts(sqlite, queue, [Record({"text": "a"})])
    decide(sqlite, Decision("k", 1, "ada", ("a>b",)))
    with pytest.raises(DataError, match="must be URIs without '<' and '>', got 'a>b'"):
        write_annif(sqlite.address, tmp_path / "a.tsv")
    assert not (tmp_path / "a.tsv").exists()


def test_the_log_has_every_decision_as_it_was_taken(filled: str, tmp_path: Path) -> None:
    assert write_log(filled, tmp_path / "log.jsonl") == 7
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [row["key"] for row in rows][:2] == ["ada0", "ada1"]
    assert rows[0]["suggested"] == [{"id": "x", "score": 0.5, "checked": True}]
    assert {row["queue"] for row in rows} == {"news", "books"}
