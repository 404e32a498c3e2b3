"""Rows that are gathered span by span."""

from __future__ import annotations

import numpy as np

from longtail.text.gathered import GatheredRows, as_matrix


def test_gathered_rows_make_a_matrix_of_just_their_size() -> None:
    rows = GatheredRows()
    rows.reserve(3, 0.5)
    rows.indices[:3], rows.counts[:3] = [0, 2, 1], [7, 8, 9]
    assert len(rows.indices) == len(rows.counts) == 6
    rows.reserve(7, 1.0)
    assert rows.indices[:3].tolist() == [0, 2, 1] and rows.counts[:3].tolist() == [7, 8, 9]
    rows.values[:2] = [0.5, 0.25]
    matrix = as_matrix(rows.arrays([np.array([2, 0])]), 4)
    assert matrix.toarray().tolist() == [[0.5, 0, 0.25, 0], [0, 0, 0, 0]]
    assert len(rows.indices) == len(rows.counts) == 2
    assert matrix.dtype == np.float32 and matrix.indices.dtype == np.int32


def test_a_wrong_guess_does_not_ask_for_all_memory() -> None:
    rows = GatheredRows()
    rows.reserve(1000, 1e-9)
    assert len(rows.indices) <= 10_000


def test_no_rows_make_an_empty_matrix() -> None:
    assert as_matrix(GatheredRows().arrays([]), 3).shape == (0, 3)
    assert as_matrix(GatheredRows().arrays([np.zeros(2, np.int64)]), 3).nnz == 0
