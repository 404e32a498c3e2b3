from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.types import NO_LABEL, LabelMatrix, TopK

N_LABELS = 6
label_sets = st.lists(st.sets(st.integers(0, N_LABELS - 1)), max_size=7)


def lists_of(matrix: LabelMatrix) -> list[list[int]]:
    return [matrix[text].tolist() for text in range(matrix.n_texts)]


def assert_sound(matrix: LabelMatrix) -> None:
    assert (matrix.indptr.dtype, matrix.indices.dtype) == (np.int64, np.int32)
    assert matrix.indptr[0] == 0
    assert matrix.indptr[-1] == len(matrix.indices)
    for row in lists_of(matrix):
        assert row == sorted(set(row))
        assert all(0 <= label < matrix.n_labels for label in row)


@given(st.lists(st.lists(st.integers(0, N_LABELS - 1))))
def test_lists_come_back_sorted_and_distinct(rows: list[list[int]]) -> None:
    matrix = LabelMatrix.from_lists(rows, N_LABELS)
    assert_sound(matrix)
    assert lists_of(matrix) == [sorted(set(row)) for row in rows]
    assert len(matrix) == matrix.n_texts == len(rows)


@given(label_sets, st.randoms())
def test_pairs_in_any_order_give_the_same_as_lists(rows: list[set[int]], random: Any) -> None:
    pairs = [(text, label) for text, row in enumerate(rows) for label in row]
    pairs = random.sample(pairs + pairs[:2], len(pairs + pairs[:2]))
    texts, labels = (np.array([pair[side] for pair in pairs], np.int64) for side in (0, 1))
    matrix = LabelMatrix.from_pairs(texts, labels, len(rows), N_LABELS)
    assert_sound(matrix)
    assert lists_of(matrix) == [sorted(row) for row in rows]


@given(label_sets)
def test_counts_by_text_and_by_label(rows: list[set[int]]) -> None:
    matrix = LabelMatrix.from_lists(rows, N_LABELS)
    assert matrix.labels_per_text().tolist() == [len(row) for row in rows]
    assert matrix.texts_per_label().tolist() == [sum(label in row for row in rows) for label in range(N_LABELS)]


@given(label_sets, st.data())
def test_taken_rows_are_those_rows_in_that_order(rows: list[set[int]], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1))) if rows else []
    taken = LabelMatrix.from_lists(rows, N_LABELS).take(np.array(chosen, np.int64))
    assert_sound(taken)
    assert lists_of(taken) == [sorted(rows[text]) for text in chosen]


@given(label_sets, st.lists(st.integers(-1, 3), min_size=N_LABELS, max_size=N_LABELS))
def test_renumbered_labels_are_moved_merged_or_dropped(rows: list[set[int]], new_id: list[int]) -> None:
    moved = LabelMatrix.from_lists(rows, N_LABELS).renumber(np.array(new_id), 4)
    assert_sound(moved)
    assert moved.n_labels == 4
    assert lists_of(moved) == [sorted({new_id[label] for label in row} - {-1}) for row in rows]


@given(label_sets)
def test_transposing_twice_changes_nothing(rows: list[set[int]]) -> None:
    matrix = LabelMatrix.from_lists(rows, N_LABELS)
    by_label = matrix.transpose()
    assert_sound(by_label)
    assert lists_of(by_label) == [[t for t, row in enumerate(rows) if label in row] for label in range(N_LABELS)]
    assert lists_of(by_label.transpose()) == lists_of(matrix)
    assert by_label.transpose().n_labels == N_LABELS


@given(label_sets)
def test_scipy_sees_ones_where_labels_are(rows: list[set[int]]) -> None:
    dense = LabelMatrix.from_lists(rows, N_LABELS).to_scipy()
    assert dense.shape == (len(rows), N_LABELS)
    assert dense.dtype == np.float32
    expected = [[float(label in row) for label in range(N_LABELS)] for row in rows]
    np.testing.assert_array_equal(dense.toarray(), np.array(expected).reshape(len(rows), N_LABELS))


def test_no_labels_at_all_are_no_problem() -> None:
    matrix = LabelMatrix.from_lists([[], []], 0)
    assert_sound(matrix)
    assert matrix.transpose().n_texts == 0
    assert LabelMatrix.from_pairs(np.array([]), np.array([]), 2, 0).n_texts == 2


def test_the_best_k_are_cut_and_stacked() -> None:
    found = TopK(np.array([[3, 1, NO_LABEL]], np.int32), np.array([[0.5, 0.25, -np.inf]], np.float32))
    assert (found.n_texts, found.k, len(found)) == (1, 3, 1)
    assert found.first(2).labels.tolist() == [[3, 1]]
    assert found.first(2).scores.tolist() == [[0.5, 0.25]]
    assert found.first(9).k == 3
    both = TopK.stack([found, found])
    assert both.labels.tolist() == [[3, 1, NO_LABEL]] * 2
    assert both.scores.shape == (2, 3)
