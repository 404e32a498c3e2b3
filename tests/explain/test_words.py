"""The words of a text, and the text without some of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.explain.explanation import Span
from longtail.explain.words import TextWords


def test_words_are_counted_once_whatever_their_case() -> None:
    words = TextWords.of({"title": "Red apples", "text": "A red -- apple's"})
    assert words.forms == ("red", "apples", "a", "--", "apple", "s")
    assert words.spans[0] == (Span("title", 0, 3), Span("text", 2, 5))


def test_deleted_words_are_gone_from_all_fields() -> None:
    words = TextWords.of({"title": "Red apples", "text": "A red apple"})
    assert words.without([0]) == {"title": " apples", "text": "A  apple"}
    assert words.without([]) == dict(words.fields)


@given(st.text(max_size=60), st.data())
def test_only_the_deleted_words_are_gone(text: str, data: st.DataObject) -> None:
    words = TextWords.of({"text": text})
    chosen = data.draw(st.sets(st.integers(0, max(len(words) - 1, 0)), max_size=len(words)))
    left = TextWords.of({"text": words.without(chosen)["text"]})
    lengths = sum(span.end - span.start for word in chosen for span in words.spans[word])
    assert len(left.fields["text"]) == len(text) - lengths
    assert all(
        text[s.start : s.end].lower() == form
        for form, spans in zip(words.forms, words.spans, strict=True)
        for s in spans
    )


def test_words_without_weight_are_left_out_and_the_weightiest_come_first() -> None:
    words = TextWords.of({"text": "one two three four"})
    weighted = words.weighted(np.array([0.0, -1.0, 2.0, 0.5]))
    assert [word.word for word in weighted] == ["three", "four", "two"]
