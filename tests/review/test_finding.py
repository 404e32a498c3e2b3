"""Texts of a queue are found by their words."""

from __future__ import annotations

from longtail.review.adding import Record, add_texts, make_queue
from longtail.review.finding import find_texts
from longtail.review.store import ReviewStore


def test_texts_are_found_by_the_beginnings_of_their_words_in_any_field_and_order(store: ReviewStore) -> None:
    queue, other = make_queue(store, "news"), make_queue(store, "other")
    texts = ["A heat pump", "Pumps and HEATING", "a trumpet", "Wärmepumpe", "heat (only)"]
    add_texts(store, queue, [Record({"title": text, "text": "a b"}) for text in texts])
    add_texts(store, other, [Record({"text": "heat pump of another queue"})])

    def found(query: str, n: int = 10) -> list[str]:
        return [one.fields["title"] for one in find_texts(store, queue, query, n)]

    assert found("heat pumps") == texts[:2]
    assert found("heat pumps", 1) == texts[:1]
    assert found("pump") == texts[:2], "inside of a word does not count"
    assert found("wärmepumpen") == ["Wärmepumpe"]
    assert found("heat (") == [texts[0], texts[1], texts[4]]
    assert found("") == texts
    assert found("heat unknown") == []
