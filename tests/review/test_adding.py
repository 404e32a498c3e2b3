from __future__ import annotations

import pytest

from longtail.errors import ConfigError, DataError
from longtail.review.adding import Record, add_texts, find_queue, make_queue, queues
from longtail.review.desk import claim
from longtail.review.statistics import progress
from longtail.review.store import ReviewStore


def records(n: int, start: int = 0) -> list[Record]:
    return [Record({"text": f"text {number}"}, uncertainty=number % 7) for number in range(start, start + n)]


def in_turn(store: ReviewStore, name: str) -> list[str]:
    queue, texts, held = find_queue(store, name), [], []
    while (text := claim(store, queue, "ada", without=held)) is not None:
        held.append(text.id)
        texts.append(text.fields["text"])
    return texts


def test_adding_a_file_twice_adds_each_text_once(store: ReviewStore) -> None:
    queue = make_queue(store, "news")
    assert add_texts(store, queue, records(2500)) == (2500, 0)
    assert add_texts(store, queue, records(10, start=2495)) == (5, 5)
    assert add_texts(store, queue, [*records(1, 9000), *records(1, 9000)]) == (1, 1)
    assert progress(store, queue)["texts"] == 2506


def test_texts_differ_if_any_field_does(sqlite: ReviewStore) -> None:
    queue = make_queue(sqlite, "news")
    fields = [{"text": "a"}, {"text": "a", "title": "b"}, {"text": "b", "title": "a"}, {"title": "a"}, {"text": "a\0b"}]
    assert add_texts(sqlite, queue, map(Record, fields)).n_texts == 5


def test_an_empty_text_is_refused(sqlite: ReviewStore) -> None:
    with pytest.raises(DataError, match="must have a field that is not empty, got text, title"):
        add_texts(sqlite, make_queue(sqlite, "news"), [Record({"text": " ", "title": ""})])


def test_orders_hand_out_as_in_the_file_at_random_or_the_least_certain_first(sqlite: ReviewStore) -> None:
    for order in ("file", "random", "uncertain"):
        add_texts(sqlite, make_queue(sqlite, order, {"order": order}), records(50))
    assert in_turn(sqlite, "file") == [f"text {number}" for number in range(50)]
    assert in_turn(sqlite, "random") != in_turn(sqlite, "file")
    assert sorted(in_turn(sqlite, "random")) == sorted(in_turn(sqlite, "file"))
    uncertain = [int(text.split()[1]) % 7 for text in in_turn(sqlite, "uncertain")]
    assert uncertain == sorted(uncertain, reverse=True)


def test_overlap_and_blind_texts_are_shares_that_do_not_depend_on_how_texts_come(sqlite: ReviewStore) -> None:
    queue = make_queue(sqlite, "news", {"overlap": 0.1, "blind": 0.3})
    add_texts(sqlite, queue, records(2000))
    with sqlite.reading() as connection:
        n_slots = connection.exec_driver_sql("SELECT count(*) FROM slot").scalar_one()
        n_blind = connection.exec_driver_sql("SELECT count(*) FROM text WHERE blind").scalar_one()
    assert 2150 < n_slots < 2250
    assert 520 < n_blind < 680


def test_a_queue_keeps_the_options_that_it_was_made_with(sqlite: ReviewStore) -> None:
    make_queue(sqlite, "news", {"per_text": 2})
    assert make_queue(sqlite, "news").options.per_text == 2
    assert make_queue(sqlite, "news", {"per_text": 2}).options.per_text == 2
    with pytest.raises(ConfigError, match="`per_text` of queue 'news' is 2 and stays so, got 3; leave it out"):
        make_queue(sqlite, "news", {"per_text": 3})


@pytest.mark.parametrize("name", ["", " ", "a/b", "a\nb", "x" * 101])
def test_names_of_queues_are_short_visible_and_fit_into_addresses(sqlite: ReviewStore, name: str) -> None:
    with pytest.raises(ConfigError, match="must be 1 to 100 visible characters without '/'"):
        make_queue(sqlite, name)
    assert queues(sqlite) == []


def test_an_unknown_queue_is_answered_with_those_there_are(sqlite: ReviewStore) -> None:
    make_queue(sqlite, "news")
    with pytest.raises(DataError, match=r"has no queue 'nws'; did you mean 'news'\? It has news\."):
        find_queue(sqlite, "nws")
