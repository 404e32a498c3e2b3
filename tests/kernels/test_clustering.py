"""What a balanced split must hold, whatever the vectors (docs/methods/shared.md#balanced-splitting,
docs/methods/xbert.md#invariant-3)."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.kernels.native.clustering import split_in_two
from longtail.kernels.reference.clustering import BY_GAIN, BY_MEMBERS, BY_SCORES


def unit_rows(n: int, n_features: int = 10, seed: int = 0) -> sp.csr_matrix:
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((n, n_features)) * (rng.random((n, n_features)) < 0.5)
    dense[:, 0] += 1e-3
    return sp.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))


def split(
    rows: sp.csr_matrix, n_left: int, spherical: bool, stop: int = BY_MEMBERS, tolerance: float = 0.0, passes: int = 20
) -> tuple[Any, Any]:
    side, objectives = np.zeros(rows.shape[0], np.int8), np.full(passes, np.nan)
    n = split_in_two(
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, rows.shape[1], n_left,
        np.int64(0), np.int64(1), spherical, stop, tolerance, passes, side, objectives,
    )  # fmt: skip
    return side, objectives[:n]


def objective(rows: sp.csr_matrix, side: Any, centres: Any, spherical: bool) -> float:
    dense = rows.toarray().astype(np.float64)
    own = np.asarray(centres)[side]
    return float((dense * own).sum(axis=1).mean() if spherical else -((dense - own) ** 2).sum(axis=1).mean())


@settings(max_examples=40)
@given(st.integers(2, 30), st.booleans(), st.integers(0, 10**6), st.data())
def test_the_objective_never_falls_and_sizes_are_kept(n: int, spherical: bool, seed: int, data: st.DataObject) -> None:
    n_left = data.draw(st.integers(1, n - 1))
    side, objectives = split(unit_rows(n, seed=seed), n_left, spherical)
    assert (np.diff(objectives) > -1e-6).all()
    assert (side == 0).sum() == n_left
    assert set(side.tolist()) == {0, 1}


@pytest.mark.parametrize("spherical", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_one_pass_is_the_best_assignment_of_its_sizes(seed: int, spherical: bool) -> None:
    rows = unit_rows(8, seed=seed)
    side, objectives = split(rows, 3, spherical, passes=1)
    centres = rows[:2].toarray()
    tried = []
    for left in combinations(range(8), 3):
        other = np.ones(8, np.int8)
        other[list(left)] = 0
        tried.append(objective(rows, other, centres, spherical))
    assert objectives[0] == pytest.approx(max(tried), abs=1e-6)
    assert objective(rows, side, centres, spherical) == pytest.approx(max(tried), abs=1e-6)


def test_two_clear_groups_are_found() -> None:
    rng = np.random.default_rng(0)
    dense = np.abs(rng.standard_normal((20, 6))) * 0.1
    groups = np.arange(20) % 2
    dense[np.arange(20), groups] += 1
    rows = sp.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))
    for spherical in (True, False):
        side, _ = split(rows, 10, spherical)
        np.testing.assert_array_equal(side, groups)


@pytest.mark.parametrize("stop", [BY_GAIN, BY_SCORES, BY_MEMBERS])
def test_each_stop_rule_ends_before_the_cap_and_a_second_look_changes_nothing(stop: int) -> None:
    rows = unit_rows(60, seed=3)
    side, objectives = split(rows, 30, True, stop, 1e-6, 200)
    assert len(objectives) < 200
    longer, _ = split(rows, 30, True, BY_MEMBERS, 0.0, 200)
    assert (side != longer).mean() < 0.1
