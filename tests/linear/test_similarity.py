"""The ranker that nobody trained: cosines of texts and label vectors below the recalled clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.labels.vectors.pifa import pifa
from longtail.linear.layer import Layer
from longtail.linear.ranker import ScoreOptions, rank
from longtail.linear.similarity import similarity_ranker
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.types import LabelMatrix

ONE = Run(LocalEngine(1))
BY_COSINE = ScoreOptions(order="margin")
N_FEATURES = 30


def unit(matrix: sp.csr_matrix) -> Any:
    dense = matrix.toarray().astype(np.float64)
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    return dense / np.where(lengths > 0, lengths, 1)


def texts(n: int, seed: int = 0) -> sp.csr_matrix:
    return sp.csr_matrix(unit(sp.random(n, N_FEATURES, 0.3, random_state=seed)).astype(np.float32))


def index_of(n_labels: int, n_clusters: int, seed: int) -> LabelIndex:
    groups = np.array_split(np.random.default_rng(seed).permutation(n_labels), n_clusters)
    return index_of_groups([groups], n_labels)


@settings(max_examples=30)
@given(st.integers(1, 60), st.integers(1, 5), st.integers(0, 25), st.integers(0, 9999))
def test_labels_of_recalled_clusters_are_ranked_by_cosine(
    n_labels: int, n_clusters: int, n_texts: int, seed: int
) -> None:
    n_clusters = min(n_clusters, n_labels)
    rng = np.random.default_rng(seed)
    index = index_of(n_labels, n_clusters, seed)
    # Vectors of any length, some empty, with negative numbers and stored zeros.
    vectors = sp.random(n_labels, N_FEATURES, 0.2, "csr", random_state=seed, data_rvs=rng.standard_normal)
    vectors.data[rng.random(vectors.nnz) < 0.1] = 0
    clusters = np.array([rng.permutation(n_clusters)[:2] for _ in range(n_texts)], np.int32)
    clusters = clusters.reshape(n_texts, min(n_clusters, 2))
    ranker = similarity_ranker(vectors, index)
    found = rank(
        ranker, Rows.of(texts(n_texts, seed)), clusters, np.zeros(clusters.shape), n_labels, BY_COSINE, run=ONE
    )
    cosines = unit(texts(n_texts, seed)) @ unit(vectors).T
    for row in range(n_texts):
        kept = found.labels[row][found.labels[row] >= 0]
        assert sorted(kept.tolist()) == np.flatnonzero(np.isin(index.parents[-1], clusters[row])).tolist()
        np.testing.assert_allclose(found.scores[row, : len(kept)], 1 / (1 + np.exp(-cosines[row, kept])), atol=2e-5)
        assert (np.diff(cosines[row, kept]) < 1e-4).all()


def test_a_text_that_is_a_labels_only_text_is_most_like_that_label() -> None:
    rows = Rows.of(texts(40))
    own = LabelMatrix.from_lists([[i] for i in range(40)], 40)
    index = index_of(40, 4, 0)
    ranker = similarity_ranker(pifa(rows, own, run=ONE), index)
    everywhere = np.tile(np.arange(4, dtype=np.int32), (40, 1))
    found = rank(ranker, rows, everywhere, np.zeros((40, 4)), 3, BY_COSINE, run=ONE)
    assert found.labels[:, 0].tolist() == list(range(40))


def test_the_clusters_scores_count_where_they_are_asked_to() -> None:
    vectors, rows = texts(12, 1), Rows.of(texts(20, 2))
    index = index_of(12, 2, 0)
    clusters = np.tile(np.array([0, 1], np.int32), (20, 1))
    scores = np.tile(np.array([-0.5, 0.0], np.float32), (20, 1))
    alone, both = (
        rank(similarity_ranker(vectors, index), rows, clusters, scores, 12, options, run=ONE)
        for options in (BY_COSINE, ScoreOptions())
    )
    in_first = [(index.parents[-1][found.labels] == 0).argmax(axis=1).sum() for found in (alone, both)]
    assert in_first[1] > in_first[0]  # labels of the cluster with the lower score come later


def test_it_is_a_layer_like_any_other_and_is_stored_like_one() -> None:
    ranker = similarity_ranker(texts(12, 1), index_of(12, 2, 0))
    rows, clusters = Rows.of(texts(20, 2)), np.zeros((20, 1), np.int32)
    found, again = (
        rank(layer, rows, clusters, np.zeros((20, 1)), 5, BY_COSINE, run=ONE)
        for layer in (ranker, Layer.from_arrays(ranker.arrays()))
    )
    np.testing.assert_array_equal(found.labels, again.labels)
    np.testing.assert_array_equal(found.scores, again.scores)


def test_vectors_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="a vector for each of 12 labels, got 11"):
        similarity_ranker(texts(11), index_of(12, 2, 0))
    with pytest.raises(ConfigError, match="65,536 children at most, got 65,537"):
        similarity_ranker(sp.csr_matrix((65_537, 2), dtype=np.float32), LabelIndex.flat(65_537))
