from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.solver import solve_squared_hinge
from longtail.kernels.reference.beam import log_score
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.linear.layer import FEW_TEXTS, Layer
from longtail.linear.training import Examples, SolverOptions, fit_layer
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.types import LabelMatrix

ONE = Run(LocalEngine(1))
DenseWeights = Callable[[Layer, int], tuple[Any, Any]]
N_TEXTS, N_FEATURES = 50, 25


def texts(seed: int = 0) -> sp.csr_matrix:
    return sp.random(N_TEXTS, N_FEATURES, 0.3, "csr", np.float32, random_state=seed)


def labels(n_labels: int, seed: int = 0) -> LabelMatrix:
    rng = np.random.default_rng(seed)
    return LabelMatrix.from_lists([np.flatnonzero(rng.random(n_labels) < 0.15) for _ in range(N_TEXTS)], n_labels)


def flat_layer(n_labels: int, run: Run = ONE, **options: Any) -> Layer:
    """All labels under the root, trained on all texts."""
    level = LabelIndex.flat(n_labels).levels()[0]
    examples = Examples.of(labels(n_labels), level, everyone=True)
    return fit_layer(Rows.of(texts()), level, examples, SolverOptions(**options), seed=3, run=run)


def solved(first: int, stop: int, n_labels: int, tolerance: float) -> Any:
    """The float weights of labels first..stop from the solver itself."""
    matrix, targets = texts(), np.zeros((N_TEXTS, LANES), np.int8)
    targets[:, : stop - first] = np.where(labels(n_labels).to_scipy().toarray()[:, first:stop] > 0, 1, -1)
    weights, ones = np.zeros((N_FEATURES + 1, LANES), np.float32), np.ones(LANES, np.float32)
    solve_squared_hinge(
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data, targets,
        np.ones(N_TEXTS, np.float32), ones, ones, np.float32(1), np.float32(tolerance), 20,
        np.uint64(3 * 1_000_003 + first), weights,
    )  # fmt: skip
    return weights[:, : stop - first]


@pytest.mark.parametrize("n_labels", [1, 5, 16, 17, 40, 300])  # 300: places in the cluster need 16 bits
@pytest.mark.parametrize("threshold", [0.0, 0.1, 5.0])
def test_stored_weights_are_the_solvers_but_for_rounding_and_pruning(
    dense_weights: DenseWeights, n_labels: int, threshold: float
) -> None:
    weights, bias = dense_weights(flat_layer(n_labels, threshold=threshold, tolerance=0.01, max_passes=20), N_FEATURES)
    blocks = range(0, n_labels, LANES)
    exact = np.concatenate([solved(at, min(at + LANES, n_labels), n_labels, 0.01) for at in blocks], axis=1)
    np.testing.assert_array_equal(bias, exact[-1])
    kept = np.where(np.abs(exact[:-1]) >= threshold, exact[:-1], 0)
    np.testing.assert_array_equal(weights[kept == 0], 0)
    assert (np.abs(weights - kept) <= np.abs(kept).max(axis=0) / 65_000).all()


@pytest.mark.parametrize("threshold", [0.0, 0.1, 1e9])
def test_weights_and_biases_are_given_by_child(dense_weights: DenseWeights, threshold: float) -> None:
    index = index_of_groups([[np.array([3, 1]), np.array([0, 4, 5]), np.array([2])]], 6)
    level, members = index.levels()[-1], labels(6)
    examples = Examples.of(members, level)
    layer = fit_layer(Rows.of(texts()), level, examples, SolverOptions(threshold=threshold), run=ONE)
    weights, bias = dense_weights(layer, N_FEATURES)
    np.testing.assert_allclose(layer.matrix(N_FEATURES).toarray(), weights.T, rtol=1e-6)
    np.testing.assert_array_equal(layer.biases(), bias)


def test_features_are_sorted_in_each_cluster_and_children_in_each_feature() -> None:
    layer = flat_layer(40)
    assert (np.diff(layer.row_feature) > 0).all()
    for start, stop in zip(layer.row_entry[:-1], layer.row_entry[1:], strict=True):
        assert (np.diff(layer.entry_child[start:stop].astype(int)) > 0).all()


def test_all_weights_may_be_pruned() -> None:
    layer = flat_layer(20, threshold=1e9)
    assert layer.n_weights == 0
    clusters, scores = np.zeros((N_TEXTS, 1), np.int32), np.zeros((N_TEXTS, 1), np.float32)
    best, _ = layer.best(Rows.of(texts()), clusters, scores, 20)
    assert (best == best[0]).all()  # only the biases are left


@pytest.mark.parametrize("n_texts", [1, FEW_TEXTS, FEW_TEXTS + 1])
@pytest.mark.parametrize("power", [0, 1, 3])
def test_the_best_children_are_those_of_a_plain_matrix_product(
    dense_weights: DenseWeights, n_texts: int, power: int
) -> None:
    index = index_of_groups([[np.array([0, 3, 4]), np.array([1, 2]), np.arange(5, 25)]], 25)
    level = index.levels()[1]
    layer = fit_layer(Rows.of(texts()), level, Examples.of(labels(25), level), SolverOptions(), run=ONE)
    part = texts()[:n_texts]
    rng = np.random.default_rng(0)
    clusters = np.array([[1, 2], [0, -1], [2, 0]], np.int32)[rng.integers(0, 3, n_texts)]
    scores = -rng.random(clusters.shape).astype(np.float32)
    best, best_scores = layer.best(Rows.of(part), clusters, scores, 30, 0.5, power)

    weights, bias = dense_weights(layer, N_FEATURES)
    own = log_score(part @ weights + bias, power)
    expected = np.full((n_texts, 25), -np.inf)
    for i, j in np.ndindex(clusters.shape):
        if clusters[i, j] >= 0:
            children = index.parents[1] == clusters[i, j]
            expected[i, children] = (0.5 * scores[i, j] + own[i])[children]
    order = np.argsort(-expected, axis=1, kind="stable")
    reached = np.take_along_axis(expected, order, 1) > -np.inf
    np.testing.assert_array_equal(best[:, :25], np.where(reached, order, -1))
    np.testing.assert_allclose(best_scores[:, :25], np.take_along_axis(expected, order, 1), rtol=1e-4)
    assert (best[:, 25:] == -1).all()
    assert (best_scores[:, 25:] == -np.inf).all()


def test_arrays_bring_back_the_layer() -> None:
    layer = flat_layer(20)
    back = Layer.from_arrays(layer.arrays())
    for name, array in layer.arrays().items():
        np.testing.assert_array_equal(getattr(back, name), array)


def test_widest_counts_the_children_of_the_largest_clusters() -> None:
    level = index_of_groups([[np.arange(3), np.arange(3, 4), np.arange(4, 9)]], 9).levels()[1]
    layer = fit_layer(Rows.of(texts()), level, Examples.of(labels(9), level), SolverOptions(), run=ONE)
    assert [layer.widest(b) for b in (1, 2, 3, 50)] == [5, 8, 9, 9]
