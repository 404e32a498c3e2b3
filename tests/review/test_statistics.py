from __future__ import annotations

import pytest

from longtail.review.adding import Queue, Record, add_texts, make_queue
from longtail.review.desk import Decision, Shown, claim, decide
from longtail.review.statistics import figures, progress
from longtail.review.store import ReviewStore
from longtail.review.tables import review_tables

DAY_S = 86_400.0
SHOWN = (Shown("a", 0.9, True, "Apple"), Shown("b", 0.6, True), Shown("c", 0.2, False))


@pytest.fixture
def queue(store: ReviewStore) -> Queue:
    """Four texts: ada files what is checked, then drops b, then adds d; bob takes c for b on the first text."""
    queue = make_queue(store, "news", {"per_text": 2})
    add_texts(store, queue, [Record({"text": f"text {number}"}) for number in range(4)])
    work = [("ada", "ab", 0.0), ("ada", "a", DAY_S), ("ada", "abd", DAY_S), ("bob", "ac", DAY_S)]
    for number, (person, labels, when) in enumerate(work):
        text = claim(store, queue, person, now=when)
        assert text is not None
        decision = Decision(
            f"k{number}", text.id, person, tuple(labels), SHOWN, model="m", seconds=number + 1.0, keystrokes=number + 1
        )
        decide(store, decision, now=when)
    return queue


def test_progress_counts_texts_by_state(store: ReviewStore, queue: Queue) -> None:
    claim(store, queue, "cyd", now=10 * DAY_S)
    text = claim(store, queue, "dan", now=10 * DAY_S)
    assert text is not None
    decide(store, Decision("s", text.id, "dan"), kind="skip", now=10 * DAY_S)
    expected = {"texts": 4, "done": 1, "claimed": 1, "skipped": 1, "waiting": 1}
    assert progress(store, queue, now=10 * DAY_S + 1) == expected


def test_acceptance_is_of_what_was_shown(store: ReviewStore, queue: Queue) -> None:
    acceptance = figures(store, queue)["acceptance"]
    assert acceptance == {
        "texts": 4,
        "checked": 8,
        "checked_filed": 6 / 8,
        "unchecked_filed": 1 / 4,
        "all_correct": 1 / 4,
        "added_per_text": 1 / 4,
    }


def test_acceptance_by_rank_and_by_score(store: ReviewStore, queue: Queue) -> None:
    contents = figures(store, queue)
    assert [row["filed"] for row in contents["by_rank"]] == [1.0, 0.5, 0.25]
    assert [(row["from"], row["shown"], row["filed"]) for row in contents["by_score"]] == [
        (0.2, 4, 0.25),
        (0.6, 4, 0.5),
        (0.9, 4, 1.0),
    ]


def test_effort_drift_and_people(store: ReviewStore, queue: Queue) -> None:
    contents = figures(store, queue)
    assert contents["effort"] == {"median_seconds": 2.5, "median_keystrokes": 2.5, "mean_keystrokes": 2.5}
    assert [(day["key"], day["filed"], day["checked_filed"]) for day in contents["by_day"]] == [
        ("1970-01-01", 1, 1.0),
        ("1970-01-02", 3, 4 / 6),
    ]
    assert [(person["key"], person["filed"]) for person in contents["by_person"]] == [("ada", 3), ("bob", 1)]
    assert [model["key"] for model in contents["by_model"]] == ["m"]


def test_agreement_is_over_texts_that_several_people_decided_on(store: ReviewStore, queue: Queue) -> None:
    agreement = figures(store, queue)["agreement"]
    assert (agreement["texts"], agreement["same_labels"]) == (1, 0.0)
    assert [(one["label"], one["name"], one["alpha"]) for one in agreement["labels"]] == [
        ("a", "Apple", None),
        ("b", "b", 0.0),
        ("c", "c", 0.0),
    ]


def test_a_text_that_was_shown_without_suggestions_counts_apart(sqlite: ReviewStore) -> None:
    queue = make_queue(sqlite, "news", {"blind": 1.0})
    add_texts(sqlite, queue, [Record({"text": "text"})])
    text = claim(sqlite, queue, "ada")
    assert text is not None
    assert text.blind
    decide(sqlite, Decision("k", text.id, "ada", ("a",), SHOWN))
    contents = figures(sqlite, queue)
    assert contents["acceptance"]["texts"] == 0
    assert contents["acceptance"]["checked_filed"] is None
    assert contents["unprompted"]["checked_filed"] == 0.5
    assert contents["by_rank"] == []


def test_tables_show_all_of_it_and_an_empty_queue_too(sqlite: ReviewStore) -> None:
    queue = make_queue(sqlite, "news")
    assert [title for title, _ in review_tables(figures(sqlite, queue))] == ["news"]


def test_tables_have_a_cell_for_every_column(store: ReviewStore, queue: Queue) -> None:
    tables = dict(review_tables(figures(store, queue)))
    assert {"news", "What people filed", "By rank", "By score", "By person", "By day", "Agreement"} <= set(tables)
    assert all(len(row) == len(table.head) for table in tables.values() for row in table.rows)
