from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.kernels.rows import Rows, gather


def some_matrix(n: int = 6, seed: int = 0) -> sp.csr_matrix:
    return sp.random(n, 9, 0.4, "csr", np.float32, random_state=seed)


def test_a_matrix_comes_back_as_it_went_in() -> None:
    matrix = some_matrix().astype(np.float64)
    rows = Rows.of(matrix)
    assert (rows.indptr.dtype, rows.indices.dtype, rows.values.dtype) == (np.int64, np.int32, np.float32)
    np.testing.assert_array_equal(rows.matrix().toarray(), matrix.toarray().astype(np.float32))


def test_columns_in_any_order_and_repeated_ones_are_put_in_order() -> None:
    matrix = sp.csr_matrix(
        (np.array([1, 2, 3, 4], np.float32), np.array([5, 1, 5, 0], np.int32), np.array([0, 3, 4])), shape=(2, 9)
    )
    rows = Rows.of(matrix)
    np.testing.assert_array_equal(rows.indices, [1, 5, 0])
    np.testing.assert_array_equal(rows.values, [2, 4, 4])
    np.testing.assert_array_equal(matrix.indices, [5, 1, 5, 0])  # the caller's matrix is left alone


def test_memory_is_shared_where_types_fit() -> None:
    matrix = some_matrix()
    assert np.shares_memory(Rows.of(matrix).values, matrix.data)


@given(st.integers(0, 6), st.integers(0, 6))
def test_a_part_is_these_rows(start: int, stop: int) -> None:
    start, stop = min(start, stop), max(start, stop)
    rows = Rows.of(some_matrix())
    part = rows.part(start, stop)
    assert len(part) == stop - start
    np.testing.assert_array_equal(part.matrix().toarray(), some_matrix().toarray()[start:stop])
    assert np.shares_memory(part.values, rows.values) or not len(part.values)


@given(st.lists(st.integers(0, 5), max_size=8), st.integers(0, 9))
def test_gathered_rows_are_the_chosen_ones_under_new_column_numbers(chosen: list[int], seed: int) -> None:
    rows = Rows.of(some_matrix(seed=seed))
    local = gather(rows, np.array(chosen, np.int64))
    dense = np.zeros((len(chosen), 9), np.float32)
    for row in range(len(chosen)):
        span = slice(local.indptr[row], local.indptr[row + 1])
        dense[row, local.features[local.indices[span]]] = local.values[span]
    np.testing.assert_array_equal(dense, some_matrix(seed=seed).toarray()[chosen])
    assert len(set(local.features.tolist())) == len(local.features)
    np.testing.assert_array_equal(gather(rows, np.array(chosen, np.int64)).indices, local.indices)  # scratch was reset
