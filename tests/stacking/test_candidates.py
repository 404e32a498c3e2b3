"""The union of members' lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.stacking.candidates import Candidates
from longtail.types import NO_LABEL, LabelMatrix, TopK

N_LABELS = 9


def lists(rows: list[list[int]], k: int = 4) -> TopK:
    best = TopK.empty(len(rows), k)
    for text, row in enumerate(rows):
        best.labels[text, : len(row)] = row
        best.scores[text, : len(row)] = np.linspace(0.9, 0.1, len(row))
    return best


some_lists = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.lists(st.integers(0, N_LABELS - 1), max_size=4, unique=True), min_size=n, max_size=n),
        min_size=1,
        max_size=3,
    )
)


@settings(max_examples=50)
@given(some_lists)
def test_candidates_are_the_labels_that_any_member_lists(members: list[list[list[int]]]) -> None:
    candidates = Candidates.of([lists(rows) for rows in members], N_LABELS)
    expected = [sorted({label for rows in members for label in rows[text]}) for text in range(len(members[0]))]
    by_text = [
        candidates.labels[start:stop].tolist()
        for start, stop in zip(candidates.indptr[:-1], candidates.indptr[1:], strict=True)
    ]
    assert by_text == expected
    assert candidates.texts.tolist() == [text for text, row in enumerate(expected) for _ in row]


def test_right_candidates_are_those_that_their_texts_have() -> None:
    candidates = Candidates.of([lists([[1, 2], [0]]), lists([[3], [2]])], N_LABELS)
    labels = LabelMatrix.from_lists([[2, 5], [0, 2]], N_LABELS)
    assert candidates.are_labels_of(labels).tolist() == [False, True, False, True, True]


def test_the_best_candidates_come_first_and_short_rows_end_empty() -> None:
    candidates = Candidates.of([lists([[4, 2], []])], N_LABELS)
    best = candidates.top_k(np.array([0.1, 0.7], np.float32), 3)
    assert best.labels.tolist() == [[4, 2, NO_LABEL], [NO_LABEL] * 3]
