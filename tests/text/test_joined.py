"""TF-IDF and embeddings side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.text.joined import with_embeddings

N_COLUMNS = 11


def rows(n: int, seed: int = 0) -> sp.csr_matrix:
    """Rows of any length, some without entries."""
    matrix = sp.random(n, N_COLUMNS, 0.3, "csr", np.float32, random_state=seed)
    return sp.csr_matrix(matrix.toarray() * (np.random.default_rng(seed).random((n, 1)) < 0.8))


def embeddings(n: int, d: int, seed: int = 0) -> Any:
    """Vectors of any length, some zero."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((n, d)) * rng.choice([0, 0.01, 1, 50], (n, 1))).astype(np.float32)


def unit(matrix: Any) -> Any:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1)


@settings(max_examples=50)
@given(st.integers(0, 20), st.integers(0, 7), st.sampled_from([0.0, 0.3, 1.0, 4.0]), st.integers(0, 9999))
def test_both_parts_are_brought_to_their_length_and_the_whole_to_one(n: int, d: int, weight: float, seed: int) -> None:
    x, e = rows(n, seed), embeddings(n, d, seed)
    found = with_embeddings(Rows.of(x), e, weight)
    expected = unit(np.hstack([unit(x.toarray().astype(float)), weight * unit(e.astype(float))]))
    assert found.n_columns == N_COLUMNS + d
    np.testing.assert_allclose(found.matrix().toarray(), expected, atol=1e-6)
    lengths = np.linalg.norm(found.matrix().toarray(), axis=1)
    assert (np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)).all()


def test_the_result_is_rows_as_kernels_want_them() -> None:
    found = with_embeddings(Rows.of(rows(9)), embeddings(9, 4).astype(np.float64))
    assert (found.indptr.dtype, found.indices.dtype, found.values.dtype) == (np.int64, np.int32, np.float32)
    for start, stop in zip(found.indptr[:-1], found.indptr[1:], strict=True):
        assert (np.diff(found.indices[start:stop]) > 0).all()


@pytest.mark.parametrize("at_once", [1, 30, 1 << 20])
def test_a_text_gets_the_same_features_alone_as_among_others(at_once: int) -> None:
    x, e = Rows.of(rows(40)), embeddings(40, 9)
    whole = with_embeddings(x, e)
    again = with_embeddings(x, e, at_once=at_once)
    np.testing.assert_array_equal(again.values, whole.values)
    np.testing.assert_array_equal(again.indices, whole.indices)
    for text in range(40):
        alone, among = with_embeddings(x.part(text, text + 1), e[text : text + 1]), whole.part(text, text + 1)
        np.testing.assert_array_equal(alone.values, among.values)
        np.testing.assert_array_equal(alone.indices, among.indices)


def test_products_of_joined_rows_are_the_mean_of_both_cosines() -> None:
    x, e = sp.random(5, N_COLUMNS, 0.9, "csr", np.float32, random_state=0), embeddings(5, 4) + 1
    found = with_embeddings(Rows.of(x), e).matrix().toarray()
    tfidf, dense = unit(x.toarray()), unit(e)
    np.testing.assert_allclose(found @ found.T, (tfidf @ tfidf.T + dense @ dense.T) / 2, atol=1e-6)


def test_inputs_are_left_alone() -> None:
    x, e = Rows.of(rows(9)), embeddings(9, 4)
    before = x.values.copy(), x.indices.copy(), e.copy()
    with_embeddings(x, e)
    for array, old in zip((x.values, x.indices, e), before, strict=True):
        np.testing.assert_array_equal(array, old)


@pytest.mark.parametrize("shape", [(8, 4), (10, 4), (9,)])
def test_embeddings_of_other_texts_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"shape \(9, d\), one per text, got"):
        with_embeddings(Rows.of(rows(9)), np.ones(shape, np.float32))


def test_what_is_no_number_is_refused() -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(DataError, match="embeddings must be numbers"):
            with_embeddings(Rows.of(rows(9)), np.full((9, 2), wrong, np.float32))
    for weight in (-1.0, np.nan, np.inf):
        with pytest.raises(ConfigError, match="at least 0, got"):
            with_embeddings(Rows.of(rows(9)), np.ones((9, 2), np.float32), weight)
