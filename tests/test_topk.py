from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.topk import top_k, top_k_of_rows
from longtail.types import NO_LABEL, TopK

Row = list[tuple[int, float]]

# Few distinct scores, so that ties are common; both zeros must tie.
scores = st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, float("inf"), float("-inf"), 1e-40, -1e-40]) | st.floats(
    allow_nan=False, width=32
)
rows = st.lists(st.dictionaries(st.integers(0, 2**31 - 2) | st.integers(0, 9), scores, max_size=8), max_size=6).map(
    lambda found: [list(row.items()) for row in found]
)


def slow_top_k(given_rows: list[Row], k: int) -> TopK:
    best = [sorted(row, key=lambda pair: (-pair[1], pair[0]))[:k] for row in given_rows]
    full = [row + [(NO_LABEL, -np.inf)] * (k - len(row)) for row in best]
    labels = np.array([[label for label, _ in row] for row in full], np.int32).reshape(len(full), k)
    return TopK(labels, np.array([[score for _, score in row] for row in full], np.float32).reshape(len(full), k))


def assert_same(found: TopK, expected: TopK) -> None:
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)
    assert found.labels.dtype == np.int32
    assert found.scores.dtype == np.float32


@given(rows, st.integers(1, 10))
def test_sparse_rows_are_cut_as_a_plain_sort_would(given_rows: list[Row], k: int) -> None:
    indptr = np.append(0, np.cumsum([len(row) for row in given_rows])).astype(np.int64)
    labels = np.array([label for row in given_rows for label, _ in row], np.int32)
    values = np.array([score for row in given_rows for _, score in row], np.float32)
    assert_same(top_k_of_rows(indptr, labels, values, k), slow_top_k(given_rows, k))


@given(rows, st.integers(1, 10))
def test_rows_with_empty_places_are_cut_as_a_plain_sort_would(given_rows: list[Row], k: int) -> None:
    labels = np.full((len(given_rows), 8), NO_LABEL, np.int32)
    values = np.full((len(given_rows), 8), 7.0)  # the score of an empty place must not matter
    for i, row in enumerate(given_rows):
        for j, (label, score) in enumerate(row):
            labels[i, 7 - j], values[i, 7 - j] = label, score
    assert_same(top_k(labels, values, k), slow_top_k(given_rows, k))


def test_many_blocks_give_the_same_as_one() -> None:
    matrix = sp.random(200, 50, 0.2, "csr", np.float32, random_state=0)
    dense = np.broadcast_to(np.arange(50, dtype=np.int32), (200, 50)), matrix.toarray()
    whole = top_k_of_rows(matrix.indptr, matrix.indices, matrix.data, 5), top_k(*dense, 5)
    assert_same(top_k_of_rows(matrix.indptr, matrix.indices, matrix.data, 5, candidates_at_once=64), whole[0])
    assert_same(top_k(*dense, 5, candidates_at_once=64), whole[1])


def test_nan_is_refused() -> None:
    with pytest.raises(DataError, match="scores must be numbers, got NaN"):
        top_k(np.array([[1, 2]]), np.array([[0.0, np.nan]]), 1)


def test_k_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="k must be at least 1, got 0"):
        top_k_of_rows(np.array([0]), np.array([]), np.array([]), 0)
