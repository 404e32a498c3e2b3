"""The native solvers against scikit-learn, against their own objectives, and on the edges of what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.solver import NEAR, solve_logistic, solve_squared_hinge

SOLVERS = {"squared_hinge": solve_squared_hinge, "logistic": solve_logistic}
both = pytest.mark.parametrize("loss", SOLVERS)


def texts(n: int = 60, n_features: int = 12, seed: int = 0) -> sp.csr_matrix:
    matrix = sp.random(n, n_features, 0.4, "csr", np.float32, random_state=seed)
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1).A1)
    return sp.csr_matrix(sp.diags(1 / np.where(lengths > 0, lengths, 1)) @ matrix, dtype=np.float32)


def signs(n: int = 60, n_lanes: int = 3, seed: int = 0) -> Any:
    """Targets (n, LANES) whose last lanes are unused; every used one has both signs."""
    targets = np.zeros((n, LANES), np.int8)
    targets[:, :n_lanes] = np.where(np.random.default_rng(seed).random((n, n_lanes)) < 0.3, 1, -1)
    targets[:2, :n_lanes] = [[1], [-1]]
    return targets


def solve(
    loss: str,
    matrix: sp.csr_matrix,
    targets: Any,
    cost_positive: Any = 1.0,
    cost_negative: Any = 1.0,
    text_costs: Any = 1.0,
    bias: float = 1.0,
    tolerance: float = 1e-5,
    max_passes: int = 3000,
    seed: int = 0,
) -> Any:
    weights = np.zeros((matrix.shape[1] + 1, LANES), np.float32)
    SOLVERS[loss](
        matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data.astype(np.float32), targets,
        np.broadcast_to(np.float32(text_costs), len(targets)).copy(),
        np.broadcast_to(np.float32(cost_positive), LANES).copy(),
        np.broadcast_to(np.float32(cost_negative), LANES).copy(),
        np.float32(bias), np.float32(tolerance), max_passes, np.uint64(seed), weights,
    )  # fmt: skip
    return weights


def objective(
    loss: str, weights: Any, matrix: sp.csr_matrix, target: Any, cost_positive: float = 1.0, cost_negative: float = 1.0
) -> float:
    """½‖w‖² + Σ c·loss of one lane, in double precision, with a constant feature of 1."""
    margins = np.sign(target) * (matrix.astype(np.float64) @ weights[:-1] + weights[-1])
    costs = np.where(target > 0, target * cost_positive, cost_negative) * (target != 0)
    losses = np.maximum(0, 1 - margins) ** 2 if loss == "squared_hinge" else np.logaddexp(0, -margins)
    return float(weights @ weights / 2 + costs @ losses)


def test_weights_too_many_for_the_caches_are_the_same_bit_for_bit() -> None:
    """They are fetched ahead. Features that no text has make a problem large without changing it."""
    matrix, targets = texts(), signs()
    wide = matrix.copy()
    wide.resize(matrix.shape[0], 2 * NEAR // LANES)
    few, many = (solve("squared_hinge", rows, targets, tolerance=0.1, max_passes=9) for rows in (matrix, wide))
    assert few.size <= NEAR < many.size
    np.testing.assert_array_equal(many[: matrix.shape[1]], few[:-1])
    np.testing.assert_array_equal(many[-1], few[-1])
    assert not many[matrix.shape[1] : -1].any()


@pytest.mark.parametrize("cost", [0.3, 1.0, 8.0])
@pytest.mark.parametrize("bias", [0.0, 1.0, 2.0])
@both
def test_the_answer_is_scikit_learns(loss: str, bias: float, cost: float) -> None:
    matrix, targets = texts(), signs()
    weights = solve(loss, matrix, targets, cost, cost, bias=bias)
    for lane in range(3):
        common: dict[str, Any] = {"C": cost, "tol": 1e-10, "max_iter": 100_000, "fit_intercept": bias > 0}
        if loss == "squared_hinge":
            peer = LinearSVC(loss=loss, dual=True, intercept_scaling=bias or 1.0, random_state=0, **common)
        else:
            peer = LogisticRegression(solver="liblinear", intercept_scaling=bias or 1.0, **common)
        peer.fit(matrix, targets[:, lane])
        np.testing.assert_allclose(weights[:-1, lane], peer.coef_[0], atol=2e-3 * max(cost, 1))
        np.testing.assert_allclose(weights[-1, lane] * bias, np.ravel(peer.intercept_)[0], atol=2e-3 * max(cost, 1))


@pytest.mark.parametrize("costs", [(1.0, 1.0), (4.0, 0.5)])
@both
def test_no_small_step_makes_the_answer_better(loss: str, costs: tuple[float, float]) -> None:
    matrix, targets = texts(seed=1), signs(seed=1)
    weights = solve(loss, matrix, targets, *costs).astype(np.float64)
    rng = np.random.default_rng(0)
    for lane in range(3):
        best = objective(loss, weights[:, lane], matrix, targets[:, lane], *costs)
        for size in (0.3, 0.03, 0.01):
            steps = rng.standard_normal((20, len(weights))) * size
            tried = [objective(loss, weights[:, lane] + step, matrix, targets[:, lane], *costs) for step in steps]
            assert min(tried) > best


@both
def test_the_gradient_is_zero_at_the_answer(loss: str) -> None:
    matrix, targets = texts(), signs()
    weights = solve(loss, matrix, targets).astype(np.float64)
    for lane in range(3):
        for at in range(len(weights)):
            step = np.zeros(len(weights))
            step[at] = 1e-4
            ahead, behind = (
                objective(loss, weights[:, lane] + way * step, matrix, targets[:, lane]) for way in (1, -1)
            )
            assert abs(ahead - behind) / 2e-4 < 5e-3


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.floats(-4, 4)), min_size=1, max_size=6))
def test_the_squared_hinge_is_zero_iff_all_margins_reach_one(cases: list[tuple[int, float]]) -> None:
    """docs/methods/xbert.md#invariant-6 on the loss whose optimum the tests above check: value, gradient, finite
    differences."""
    target, score = np.array([t for t, _ in cases]), np.array([s for _, s in cases])
    nothing = sp.csr_matrix((len(cases), 0))

    def loss(scores: Any) -> float:
        total = sum(objective("squared_hinge", np.array([s]), nothing[:1], np.array([t])) - s * s / 2
                    for s, t in zip(scores, target, strict=True))  # fmt: skip
        return float(total) / len(cases)

    assert (loss(score) < 1e-12) == bool((target * score >= 1 - 1e-6).all())
    gradient = -2 * target * np.maximum(0, 1 - target * score) / len(cases)
    steps = np.eye(len(cases)) * 1e-5
    numeric = [(loss(score + step) - loss(score - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(numeric, gradient, atol=1e-4)


@both
def test_each_lane_has_costs_of_its_own(loss: str) -> None:
    matrix, targets = texts(), signs()
    positive, negative = np.full(LANES, 1.0), np.full(LANES, 1.0)
    positive[:3], negative[:3] = [0.5, 1, 4], [2, 1, 0.25]
    together = solve(loss, matrix, targets, positive, negative)
    for lane in range(3):
        alone = np.zeros_like(targets)
        alone[:, 0] = targets[:, lane]
        weights = solve(loss, matrix, alone, positive[lane], negative[lane])
        np.testing.assert_allclose(together[:, lane], weights[:, 0], atol=1e-3)


@both
def test_a_positive_that_counts_n_times_is_n_copies_of_it(loss: str) -> None:
    matrix, targets = texts(20), signs(20)
    counted = targets.copy()
    counted[0, :3] = 3
    copies = sp.vstack([matrix, matrix[[0, 0]]], format="csr")
    repeated = solve(loss, copies, np.concatenate([targets, targets[[0, 0]]]))
    np.testing.assert_allclose(solve(loss, matrix, counted), repeated, atol=2e-3)
    assert np.abs(solve(loss, matrix, targets) - repeated).max() > 0.02


@both
def test_a_text_of_cost_n_is_n_copies_of_it(loss: str) -> None:
    matrix, targets = texts(20), signs(20)
    costs = np.ones(20, np.float32)
    costs[:2] = 3
    copies = sp.vstack([matrix, matrix[[0, 0, 1, 1]]], format="csr")
    repeated = solve(loss, copies, np.concatenate([targets, targets[[0, 0, 1, 1]]]))
    np.testing.assert_allclose(solve(loss, matrix, targets, text_costs=costs), repeated, atol=2e-3)


@both
def test_a_text_that_costs_nothing_is_as_good_as_absent(loss: str) -> None:
    matrix, targets = texts(20), signs(20)
    costs = np.ones(20, np.float32)
    costs[5:9] = 0
    kept = np.flatnonzero(costs)
    without = solve(loss, matrix[kept], targets[kept])
    np.testing.assert_allclose(solve(loss, matrix, targets, text_costs=costs), without, atol=1e-3)


@both
def test_a_lane_may_leave_out_texts(loss: str) -> None:
    matrix, targets = texts(30), signs(30)
    targets[10:, 1] = 0
    found = solve(loss, matrix, targets)
    np.testing.assert_allclose(found[:, 1], solve(loss, matrix[:10], targets[:10])[:, 1], atol=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
@both
def test_labels_of_one_sign_get_a_model_of_that_sign(loss: str, sign: int) -> None:
    matrix = texts(15)
    targets = np.zeros((15, LANES), np.int8)
    targets[:, 0] = sign
    for bias in (0.0, 1.0):
        weights = solve(loss, matrix, targets, bias=bias)
        margins = matrix @ weights[:-1, 0] + bias * weights[-1, 0]
        has_features = np.diff(matrix.indptr) > 0
        assert np.isfinite(weights).all()
        assert (sign * margins[has_features | (bias > 0)] > 0).all()


@both
def test_no_texts_and_texts_without_features_give_finite_weights(loss: str) -> None:
    nothing = sp.csr_matrix((0, 4), dtype=np.float32)
    assert not solve(loss, nothing, np.zeros((0, LANES), np.int8)).any()
    empty = sp.csr_matrix((3, 4), dtype=np.float32)
    targets = np.zeros((3, LANES), np.int8)
    targets[:, 0] = [1, -1, -1]
    for bias in (0.0, 1.0):
        weights = solve(loss, empty, targets, bias=bias)
        assert np.isfinite(weights).all()
        assert not weights[:-1].any()
        assert weights[-1, 0] * bias <= 0


@both
def test_the_same_seed_gives_the_same_bits_and_another_seed_the_same_answer(loss: str) -> None:
    matrix, targets = texts(), signs()
    loosely = [solve(loss, matrix, targets, tolerance=0.1, seed=seed) for seed in (7, 7, 8)]
    np.testing.assert_array_equal(loosely[0], loosely[1])
    assert not np.array_equal(loosely[0], loosely[2])
    strictly = [solve(loss, matrix, targets, seed=seed) for seed in (7, 8)]
    np.testing.assert_allclose(*strictly, atol=1e-3)


@both
def test_a_lane_does_not_depend_on_what_the_others_hold(loss: str) -> None:
    matrix, targets = texts(), signs()
    moved = np.zeros_like(targets)
    moved[:, [15, 4, 9]] = targets[:, :3]
    np.testing.assert_array_equal(solve(loss, matrix, targets)[:, :3], solve(loss, matrix, moved)[:, [15, 4, 9]])


@pytest.mark.parametrize("size", [1e-3, 1.0, 100.0])
@pytest.mark.parametrize("cost", [1e-4, 1.0, 1e4])
@both
def test_weights_stay_finite_for_large_and_small_features_and_costs(loss: str, cost: float, size: float) -> None:
    matrix = texts(20) * np.float32(size)
    weights = solve(loss, matrix, signs(20), cost, cost, tolerance=0.1, max_passes=50)
    assert np.isfinite(weights).all()
