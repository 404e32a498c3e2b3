from __future__ import annotations

import pytest

from longtail.linear.spans import map_spans
from longtail.run.local import LocalEngine
from longtail.run.run import Run


def size(span: slice) -> int:
    return int(span.stop - span.start)


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_texts", [0, 1, 7, 8, 60])
def test_spans_hold_each_text_once_and_no_more_than_asked_for(n_texts: int, n_threads: int) -> None:
    found = list(map_spans(size, n_texts, 9, name="predict", run=Run(LocalEngine(n_threads)), most=7))
    assert [text for span, _ in found for text in range(span.start, span.stop)] == list(range(n_texts))
    assert all(n == size(span) <= 7 for span, n in found)


def test_many_margins_make_spans_short() -> None:
    found = [n for _, n in map_spans(size, 100, 1 << 20, name="predict", run=Run(LocalEngine(1)))]
    assert found == [2] * 50
