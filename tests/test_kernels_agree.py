"""Every native kernel against its plain reference: same results, inputs left alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.dispatcher import Dispatcher

import longtail.kernels.native as native_package
import longtail.kernels.reference.nearest as nearest_reference
from longtail.kernels.native import names as native_names
from longtail.kernels.native.lanes import LANES
from longtail.kernels.native.tokens import add_terms
from longtail.kernels.reference.clustering import BY_GAIN, BY_MEMBERS, BY_SCORES

NOT_KERNELS = {"__init__", "jit", "lanes"}
MODULES = sorted(file.stem for file in Path(native_package.__path__[0]).glob("*.py") if file.stem not in NOT_KERNELS)
NAMESAKES = {"chunk_margins_few": "chunk_margins"}
"""Kernels that are a second way to the result of another one."""

few = settings(max_examples=40)


def public_kernels(module: str) -> dict[str, Callable[..., Any]]:
    found = import_module(f"longtail.kernels.native.{module}")
    return {
        name: kernel
        for name, kernel in vars(found).items()
        if isinstance(kernel, Dispatcher) and kernel.py_func.__module__ == found.__name__ and not name.startswith("_")
    }


def reference_of(module: str, name: str) -> Callable[..., Any]:
    return getattr(import_module(f"longtail.kernels.reference.{module}"), NAMESAKES.get(name, name))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_kernel_has_a_reference_with_the_same_parameters(module: str) -> None:
    kernels = public_kernels(module)
    assert kernels
    for name, kernel in kernels.items():
        expected = inspect.signature(reference_of(module, name)).parameters
        assert list(inspect.signature(kernel.py_func).parameters) == list(expected), name


def run_both(module: str, name: str, arguments: dict[str, Any], outputs: tuple[str, ...] = ()) -> dict[str, Any]:
    """Call both on copies; returns `{output: (native, reference)}`, with the returned values as `return`."""
    found = {}
    kernels = getattr(import_module(f"longtail.kernels.native.{module}"), name), reference_of(module, name)
    results = []
    for function in kernels:
        own = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in arguments.items()}
        own["return"] = function(*(own[key] for key in arguments))
        for key, value in arguments.items():
            if key not in outputs:
                np.testing.assert_array_equal(own[key], value, f"{function} changed its input {key}")
        results.append(own)
    for key in (*outputs, "return"):
        found[key] = results[0][key], results[1][key]
    return found


def assert_equal(found: dict[str, Any]) -> None:
    for key, (native, reference) in found.items():
        np.testing.assert_array_equal(native, reference, key)


def assert_close(found: dict[str, Any], tolerance: float = 1e-5) -> None:
    for key, (native, reference) in found.items():
        np.testing.assert_allclose(native, reference, tolerance, tolerance, err_msg=key)


@st.composite
def sparse_rows(draw: st.DrawFn, n_rows: st.SearchStrategy[int], n_columns: int, exact: bool = False) -> dict[str, Any]:
    """CSR rows, some empty, some the same; `exact` values are small halves, so that all sums are exact and can tie."""
    n = draw(n_rows)
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    dense = rng.integers(-4, 5, (n, n_columns)) / 2 if exact else rng.standard_normal((n, n_columns))
    dense = dense * (rng.random((n, n_columns)) < draw(st.sampled_from([0.0, 0.2, 0.6, 1.0])))
    if n:
        dense[rng.random(n) < draw(st.sampled_from([0.0, 0.3]))] = 0
        dense = dense[np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.5])), rng.integers(0, n, n), np.arange(n))]
    matrix = sp.csr_matrix(dense.astype(np.float32).reshape(n, n_columns))
    return {
        "indptr": matrix.indptr.astype(np.int64),
        "indices": matrix.indices.astype(np.int32),
        "values": matrix.data.astype(np.float32),
    }


def unit(rows: dict[str, Any]) -> dict[str, Any]:
    lengths = np.array([np.sqrt((part**2).sum()) for part in np.split(rows["values"], rows["indptr"][1:-1])])
    owner = np.repeat(np.arange(len(rows["indptr"]) - 1), np.diff(rows["indptr"]))
    return {**rows, "values": (rows["values"] / lengths[owner]).astype(np.float32)}


# rows


@few
@given(sparse_rows(st.integers(1, 8), 9), st.lists(st.integers(0, 7), max_size=10))
def test_gather_rows(rows: dict[str, Any], chosen: list[int]) -> None:
    chosen = [row % (len(rows["indptr"]) - 1) for row in chosen]
    size = int(sum(np.diff(rows["indptr"])[chosen]))
    arguments = {
        **rows,
        "rows": np.array(chosen, np.int32),
        "local_of": np.full(9, -1, np.int32),
        "out_indptr": np.zeros(len(chosen) + 1, np.int64),
        "out_indices": np.zeros(size, np.int32),
        "out_values": np.zeros(size, np.float32),
        "features": np.full(min(size, 9), -7, np.int32),
    }
    assert_equal(run_both("rows", "gather_rows", arguments, ("out_indptr", "out_indices", "out_values", "features")))


@few
@given(sparse_rows(st.integers(1, 8), 9, exact=True), st.integers(1, 10), st.data())
def test_sum_rows(rows: dict[str, Any], keep: int, data: st.DataObject) -> None:
    n = len(rows["indptr"]) - 1
    groups = data.draw(st.lists(st.lists(st.integers(0, n - 1), max_size=4), max_size=4))
    flat = [row for group in groups for row in group]
    weights = data.draw(st.lists(st.sampled_from([1.0, 0.5, 2.0]), min_size=len(flat), max_size=len(flat)))
    arguments = {
        **rows,
        "n_columns": 9,
        "group_ptr": np.cumsum([0, *map(len, groups)]).astype(np.int64),
        "group_rows": np.array(flat, np.int32),
        "group_weights": np.array(weights, np.float32),
        "keep": keep,
        "out_indptr": np.zeros(len(groups) + 1, np.int64),
        "out_indices": np.full(9 * len(groups), -1, np.int32),
        "out_values": np.zeros(9 * len(groups), np.float32),
    }
    found = run_both("rows", "sum_rows", arguments, ("out_indptr", "out_indices", "out_values"))
    assert_close({"out_values": found.pop("out_values")})
    assert_equal(found)


# clustering


@few
@given(
    sparse_rows(st.integers(2, 14), 7),
    st.booleans(),
    st.sampled_from([BY_GAIN, BY_SCORES, BY_MEMBERS]),
    st.integers(1, 6),
    st.data(),
)
def test_split_in_two(rows: dict[str, Any], spherical: bool, stop: int, max_passes: int, data: st.DataObject) -> None:
    n = len(rows["indptr"]) - 1
    first, second = data.draw(st.permutations(range(n)))[:2]
    arguments = {
        **unit(rows),
        "n_features": 7,
        "n_left": data.draw(st.integers(1, n - 1)),
        "first": np.int64(first),
        "second": np.int64(second),
        "spherical": spherical,
        "stop": stop,
        "tolerance": 1e-4,
        "max_passes": max_passes,
        "side": np.zeros(n, np.int8),
        "objectives": np.full(max_passes, -9.0),
    }
    found = run_both("clustering", "split_in_two", arguments, ("side", "objectives"))
    assert_close({"objectives": found.pop("objectives")})
    assert_equal(found)


@few
@given(sparse_rows(st.integers(0, 6), 7, exact=True), st.integers(1, 2 * LANES + 1), st.integers(0, 99))
def test_assign_to_centres(rows: dict[str, Any], n_centres: int, seed: int) -> None:
    n = len(rows["indptr"]) - 1
    rng = np.random.default_rng(seed)
    arguments = {
        **rows,
        "centres": (rng.integers(-2, 3, (-(-n_centres // LANES), 7, LANES)) / 2).astype(np.float32),
        "n_centres": n_centres,
        "nearest": np.full(n, -1, np.int64),
        "similarity": np.zeros(n, np.float32),
    }
    assert_equal(run_both("clustering", "assign_to_centres", arguments, ("nearest", "similarity")))


# blocks


@few
@given(st.integers(0, 7), st.integers(1, 6), st.integers(0, 4), st.integers(0, 999), st.booleans())
def test_texts_of_clusters(n_texts: int, n_clusters: int, n_recalled: int, seed: int, counting: bool) -> None:
    rng = np.random.default_rng(seed)
    own = sp.csr_matrix(rng.random((n_texts, n_clusters)) < 0.3)
    recalled = np.full((n_texts, n_recalled), -1, np.int32)
    for row in recalled:
        kept = rng.permutation(n_clusters)[: rng.integers(0, n_recalled + 1)]
        row[: len(kept)] = kept
    arguments = {
        "positive_indptr": own.indptr.astype(np.int64),
        "positive_indices": own.indices.astype(np.int32),
        "recalled": recalled,
        "n_clusters": n_clusters,
        "text_ptr": np.zeros(n_clusters + 1, np.int64),
        "texts": np.empty(0, np.int32),
    }
    counted = run_both("blocks", "texts_of_clusters", arguments, ("text_ptr", "texts"))
    assert_equal(counted)
    text_ptr = counted["text_ptr"][0]
    arguments |= {"text_ptr": text_ptr, "texts": np.full(text_ptr[-1], -1, np.int32)}
    assert_equal(run_both("blocks", "texts_of_clusters", arguments, ("text_ptr", "texts")))


@few
@given(st.integers(0, 6), st.integers(1, 40), st.data())
def test_fill_targets(n_texts: int, n_children: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    members = sp.csr_matrix(rng.random((8, n_children)) < 0.3)
    first = data.draw(st.integers(0, n_children - 1))
    arguments = {
        "texts": rng.permutation(8)[:n_texts].astype(np.int32),
        "member_indptr": members.indptr.astype(np.int64),
        "member_indices": members.indices.astype(np.int32),
        "member_counts": rng.integers(1, 128, members.nnz).astype(np.int8),
        "position": rng.permutation(n_children).astype(np.int64),
        "first": first,
        "stop": data.draw(st.integers(first, min(first + LANES, n_children))),
        "targets": np.full((n_texts, LANES), 99, np.int8),
    }
    assert_equal(run_both("blocks", "fill_targets", arguments, ("targets",)))


@few
@given(st.integers(0, 8), st.integers(0, LANES), st.sampled_from([0.5, 1.0, 1e-30, 9.0]), st.integers(0, 999))
def test_prune(n_features: int, n_lanes: int, threshold: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arguments = {
        "weights": (rng.integers(-3, 4, (n_features + 1, LANES)) / 2).astype(np.float32),
        "order": rng.permutation(n_features).astype(np.int32),
        "n_lanes": n_lanes,
        "threshold": np.float32(threshold),
        "out_row": np.empty(0, np.int32),
        "out_lane": np.empty(0, np.uint8),
        "out_weight": np.empty(0, np.float32),
    }
    outputs = ("out_row", "out_lane", "out_weight")
    counted = run_both("blocks", "prune", arguments, outputs)
    assert_equal(counted)
    arguments |= {key: np.zeros(counted["return"][0], arguments[key].dtype) for key in outputs}
    assert_equal(run_both("blocks", "prune", arguments, outputs))


# beam


def chunks(rng: np.random.Generator, n_clusters: int, n_features: int, max_children: int) -> dict[str, Any]:
    """Random weights in chunks; some clusters have no children, some no weights."""
    sizes = rng.integers(0, max_children + 1, n_clusters)
    n_rows, row_feature, row_entry, entry_child, n_entries = [], [], [], [], []
    for size in sizes:
        kept = np.argwhere(rng.random((n_features, size)) < 0.3)
        features, starts = np.unique(kept[:, 0], return_index=True)
        n_rows.append(len(features))
        n_entries.append(len(kept))
        row_feature.append(features)
        row_entry.append(np.append(starts, len(kept)))
        entry_child.append(kept[:, 1])
    n_children = int(sizes.sum())
    return {
        "child_ptr": np.append(0, np.cumsum(sizes)).astype(np.int64),
        "scale": rng.uniform(0.5, 2, n_children).astype(np.float32) / 32767,
        "bias": rng.standard_normal(n_children).astype(np.float32),
        "row_ptr": np.append(0, np.cumsum(n_rows)).astype(np.int64),
        "row_feature": np.concatenate(row_feature).astype(np.int32),
        "entry_base": np.append(0, np.cumsum(n_entries)).astype(np.int64),
        "row_entry": np.concatenate(row_entry).astype(np.uint32),
        "entry_child": np.concatenate(entry_child).astype(np.uint16),
        "entry_value": rng.integers(-32767, 32768, sum(n_entries)).astype(np.int16),
    }


def recalled_clusters(rng: np.random.Generator, n_texts: int, n_clusters: int, width: int) -> Any:
    clusters = np.full((n_texts, width), -1, np.int32)
    for row in clusters:
        chosen = rng.permutation(n_clusters)[: rng.integers(0, width + 1)]
        row[: len(chosen)] = chosen
    return clusters


def offsets_of(clusters: Any, child_ptr: Any) -> tuple[Any, int]:
    sizes = np.where(clusters >= 0, np.diff(child_ptr)[clusters], 0).astype(np.int64)
    ends = np.cumsum(sizes.ravel())
    return (ends - sizes.ravel()).reshape(clusters.shape), int(sizes.sum())


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("name", ["chunk_margins", "chunk_margins_few"])
@few
@given(sparse_rows(st.integers(0, 6), 8), st.integers(1, 5), st.integers(1, 4), st.integers(0, 999))
def test_chunk_margins(name: str, narrow: bool, rows: dict[str, Any], n_clusters: int, width: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    chunk = chunks(rng, n_clusters, 8, 20)
    if narrow:
        chunk |= {
            "row_entry": chunk["row_entry"].astype(np.uint16),
            "entry_child": chunk["entry_child"].astype(np.uint8),
        }
    clusters = recalled_clusters(rng, len(rows["indptr"]) - 1, n_clusters, width)
    offsets, size = offsets_of(clusters, chunk["child_ptr"])
    order = ("child_ptr", "scale", "bias", "row_ptr", "row_feature", "entry_base", "row_entry")
    arguments = {
        **rows,
        "clusters": clusters,
        "offsets": offsets,
        **{key: chunk[key] for key in (*order, "entry_child", "entry_value")},
        "n_features": 8,
        "margins": np.full(size, np.nan, np.float32),
    }
    found = run_both("beam", name, arguments, ("margins",))
    assert found.pop("return") == (None, None)
    assert_close(found, 1e-4)


@few
@given(
    st.integers(0, 5),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(1, 9),
    st.integers(0, 8),
    st.sampled_from([0.0, 0.25, 1.0]),
    st.integers(0, 999),
)
def test_keep_best(n_texts: int, n_clusters: int, width: int, k: int, power: int, weight: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    child_ptr = np.append(0, np.cumsum(rng.integers(0, 6, n_clusters))).astype(np.int64)
    clusters = recalled_clusters(rng, n_texts, n_clusters, width)
    offsets, size = offsets_of(clusters, child_ptr)
    arguments = {
        "clusters": clusters,
        "scores": -rng.integers(0, 3, clusters.shape).astype(np.float32),
        "offsets": offsets,
        "child_ptr": child_ptr,
        "children": rng.permutation(int(child_ptr[-1])).astype(np.int32),
        # Margins on a coarse grid tie often and never nearly.
        "margins": (rng.integers(-6, 7, size) / 4).astype(np.float32),
        "weight": np.float32(weight),
        "power": power,
        "best": np.full((n_texts, k), -9, np.int32),
        "best_scores": np.zeros((n_texts, k), np.float32),
    }
    found = run_both("beam", "keep_best", arguments, ("best", "best_scores"))
    np.testing.assert_allclose(*found["best_scores"], 1e-5, 1e-6)
    for native, reference, scores in zip(*found["best"], found["best_scores"][1], strict=True):
        # The two round scores differently, so labels whose scores are equal but for rounding may swap.
        n = int((scores > -np.inf).sum())
        np.testing.assert_array_equal(native >= 0, np.arange(len(native)) < n)
        groups = np.cumsum(np.diff(scores[:n], prepend=0) < -1e-4 * np.maximum(1, np.abs(scores[:n])))
        for group in np.unique(groups)[:-1]:
            at = np.flatnonzero(groups == group)
            assert set(native[at]) == set(reference[at])


# solver


@few
@given(st.integers(0, 20), st.integers(0, 2**64 - 1))
def test_shuffle(n: int, state: int) -> None:
    native, reference = (import_module(f"longtail.kernels.{kind}.solver").shuffle for kind in ("native", "reference"))
    orders = np.arange(n).astype(np.int32), np.arange(n)
    assert int(native(orders[0], np.uint64(state))) == reference(orders[1], state)
    np.testing.assert_array_equal(*orders)
    np.testing.assert_array_equal(np.sort(orders[0]), np.arange(n))


@few
@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-3, 1e3), st.floats(1e-3, 10), st.floats(-30, 30))
def test_newton(share: float, cost: float, square: float, margin: float) -> None:
    native, reference = (import_module(f"longtail.kernels.{kind}.solver").newton for kind in ("native", "reference"))
    found, expected = native(share * cost, cost, square, margin), reference(share * cost, cost, square, margin)
    assert found == pytest.approx(expected, rel=1e-9)
    assert 0 < found < cost


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    rows = draw(sparse_rows(st.integers(0, 10), 6))
    n = len(rows["indptr"]) - 1
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    n_lanes = draw(st.sampled_from([1, 3, LANES]))
    targets = np.zeros((n, LANES), np.int8)
    targets[:, :n_lanes] = np.where(rng.random((n, n_lanes)) < 0.4, rng.integers(1, 4, (n, n_lanes)), -1)
    return {
        **unit(rows),
        "targets": targets,
        "text_costs": rng.choice([0.0, 0.5, 1.0, 2.0], n).astype(np.float32),
        "cost_positive": rng.choice([0.5, 1.0, 4.0], LANES).astype(np.float32),
        "cost_negative": rng.choice([0.5, 1.0, 4.0], LANES).astype(np.float32),
        "bias": np.float32(draw(st.sampled_from([0.0, 1.0]))),
        "tolerance": np.float32(0),
        "max_passes": draw(st.integers(1, 6)),
        "seed": np.uint64(draw(st.integers(0, 2**63))),
        "weights": np.zeros((7, LANES), np.float32),
    }


@pytest.mark.parametrize("name", ["solve_squared_hinge", "solve_logistic"])
@few
@given(problems())
def test_solvers_walk_the_same_way(name: str, problem: dict[str, Any]) -> None:
    found = run_both("solver", name, problem, ("weights",))
    np.testing.assert_allclose(*found["weights"], 1e-3, 2e-4)
    n_lanes = int((problem["targets"] != 0).any(axis=0).sum())
    assert not found["weights"][0][:, n_lanes:].any()


@pytest.mark.parametrize("name", ["solve_squared_hinge", "solve_logistic"])
@pytest.mark.parametrize("seed", range(3))
def test_solvers_stop_after_the_same_pass(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = sp.random(40, 12, 0.4, "csr", np.float32, random_state=seed)
    problem = {
        "indptr": matrix.indptr.astype(np.int64),
        "indices": matrix.indices.astype(np.int32),
        "values": matrix.data,
        "targets": np.where(rng.random((40, LANES)) < 0.3, 1, -1).astype(np.int8),
        "text_costs": np.ones(40, np.float32),
        "cost_positive": np.ones(LANES, np.float32),
        "cost_negative": np.ones(LANES, np.float32),
        "bias": np.float32(1),
        "tolerance": np.float32(0.1),
        "max_passes": 100,
        "seed": np.uint64(seed),
        "weights": np.zeros((13, LANES), np.float32),
    }
    found = run_both("solver", name, problem, ("weights",))
    assert found["return"][0] == found["return"][1] < 100
    np.testing.assert_allclose(*found["weights"], 1e-3, 1e-4)


# nearest

N_BANDS = 4


def bands_of(rng: np.random.Generator, rows: dict[str, Any], n_columns: int) -> dict[str, Any]:
    """Any bands, though those of frequent columns are meant to come first, and the norms of `rows` in them."""
    n = len(rows["indptr"]) - 1
    bands = rng.integers(0, N_BANDS, n_columns).astype(np.int8)
    by_row = {"row_ptr": rows["indptr"], "columns": rows["indices"], "row_values": rows["values"], "bands": bands}
    norms = np.full((N_BANDS, n), np.nan, np.float32)
    nearest_reference.band_norms(*by_row.values(), norms)
    return {**by_row, "norms": norms}


@few
@given(sparse_rows(st.integers(0, 9), 7), st.integers(0, 2**32))
def test_band_norms(rows: dict[str, Any], seed: int) -> None:
    arguments = bands_of(np.random.default_rng(seed), rows, 7)
    below = [arguments["bands"] < band for band in range(N_BANDS)]
    points = sp.csr_matrix((rows["values"], rows["indices"], rows["indptr"]), (len(rows["indptr"]) - 1, 7)).toarray()
    lengths = [np.linalg.norm(points[:, some].astype(np.float64), axis=1) for some in below]
    np.testing.assert_allclose(arguments["norms"], lengths, 2e-6)
    assert (arguments["norms"] >= lengths).all()
    assert_equal(run_both("nearest", "band_norms", arguments, ("norms",)))


def nearest_arguments(
    rng: np.random.Generator, texts: dict[str, Any], pool: dict[str, Any], n_columns: int, k: int
) -> dict[str, Any]:
    n, n_pool = len(texts["indptr"]) - 1, len(pool["indptr"]) - 1
    by_column = sp.csr_matrix((pool["values"], pool["indices"], pool["indptr"]), (n_pool, n_columns)).tocsc()
    return {
        **texts,
        "ptr": by_column.indptr.astype(np.int64),
        "rows": by_column.indices.astype(np.int32),
        "weights": by_column.data,
        **bands_of(rng, pool, n_columns),
        "groups": rng.integers(-1, 3, n).astype(np.int32),
        "pool_groups": rng.integers(0, 3, n_pool).astype(np.int32),
        "totals": np.zeros(n_pool, np.float32),
        "dense": np.zeros(n_columns, np.float32),
        "best": np.full((n, k), 7, np.int32),
        "best_products": np.full((n, k), 7, np.float32),
    }


@few
@given(
    sparse_rows(st.integers(0, 6), 7, exact=True),
    sparse_rows(st.integers(1, 9), 7, exact=True),
    st.integers(1, 11),
    st.integers(0, 2**32),
)
def test_nearest_rows(texts: dict[str, Any], pool: dict[str, Any], k: int, seed: int) -> None:
    arguments = nearest_arguments(np.random.default_rng(seed), texts, pool, 7, k)
    assert_equal(run_both("nearest", "nearest_rows", arguments, ("best", "best_products")))


@few
@given(
    sparse_rows(st.integers(1, 4), 60),
    sparse_rows(st.sampled_from([200, 700]), 60),
    st.integers(1, 9),
    st.floats(0, 4),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_nearest_rows_that_lists_are_left_out_for(
    texts: dict[str, Any], pool: dict[str, Any], k: int, skew: float, positive: bool, seed: int
) -> None:
    """Weights fall from column to column, so that some bands need not be read; sums are not exact."""
    rng = np.random.default_rng(seed)
    for rows in (texts, pool):
        values = rows["values"] * (rows["indices"] + np.float32(1)) ** np.float32(skew)
        rows["values"] = np.abs(values) if positive else values
    arguments = nearest_arguments(rng, unit(texts), unit(pool), 60, k)
    arguments["bands"] = (np.arange(60) * N_BANDS // 60).astype(np.int8)
    nearest_reference.band_norms(*(arguments[key] for key in ("row_ptr", "columns", "row_values", "bands", "norms")))
    assert_equal(run_both("nearest", "nearest_rows", arguments, ("best", "best_products")))


def test_every_kernel_is_compared_here() -> None:
    """A new kernel needs a test above; those of tokens are compared in tests/kernels/test_tokens.py."""
    source = Path(__file__).read_text()
    missing = [
        f"{module}.{name}"
        for module in MODULES
        if module != "tokens"
        for name in public_kernels(module)
        if f'"{name}"' not in source and f"def test_{name}(" not in source
    ]
    assert not missing


# order


@few
@given(st.integers(0, 400), st.integers(1, 2**40), st.integers(0, 2**32), st.sampled_from(["drawn", "up", "down"]))
def test_sort_first(n: int, n_values: int, seed: int, order: str) -> None:
    keys = np.random.default_rng(seed).integers(n_values, size=n + 3)
    keys = keys if order == "drawn" else np.sort(keys)[:: 1 if order == "up" else -1].copy()
    assert_equal(run_both("order", "sort_first", {"keys": keys, "n_keys": n}, ("keys",)))


@few
@given(st.integers(1, 400), st.integers(1, 50), st.integers(0, 2**32), st.data())
def test_kth_smallest(n: int, n_values: int, seed: int, data: st.DataObject) -> None:
    values = np.random.default_rng(seed).integers(-n_values, n_values, size=n).astype(np.float32)
    values[values == n_values - 1] = np.inf
    found = run_both("order", "kth_smallest", {"values": values, "k": data.draw(st.integers(0, n - 1))}, ("values",))
    assert_equal({"return": found["return"]})
    assert_equal({"values": tuple(map(np.sort, found["values"]))})  # type: ignore[dict-item]


# trees


@few
@given(st.integers(0, 6), st.integers(1, 4), st.integers(0, 2**32))
def test_sum_of_trees(n_rows: int, n_trees: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inner = [[0, 1], [0]]  # places of the inner nodes of a tree: two with three leaves, or one with two
    nodes: list[tuple[int, float, int, int, float]] = []
    roots = []
    for _ in range(n_trees):
        start, places = len(nodes), inner[int(rng.integers(2))]
        roots.append(start)
        for place in range(2 * len(places) + 1):
            is_inner = place in places
            children = (start + 2 * place + 1, start + 2 * place + 2) if is_inner else (0, 0)
            feature = int(rng.integers(3)) if is_inner else -1
            nodes.append((feature, float(rng.integers(-2, 3)), *children, float(rng.normal())))
    feature, threshold, left, right, value = map(np.array, zip(*nodes, strict=True))
    arguments = {
        "features": rng.integers(-2, 3, (n_rows, 3)).astype(np.float32),
        "roots": np.array(roots, np.int32),
        "feature": feature.astype(np.int32),
        "threshold": threshold,
        "left": left.astype(np.int32),
        "right": right.astype(np.int32),
        "value": value,
        "totals": np.full(n_rows, np.nan),
    }
    assert_equal(run_both("trees", "sum_of_trees", arguments, ("totals",)))


# names


@st.composite
def names_and_texts(draw: st.DrawFn) -> dict[str, Any]:
    """Names of one to three of six stems, shared by labels, some qualified; texts with unknown words and compounds."""
    stem = st.integers(0, 5)
    keys = draw(st.lists(st.lists(stem, min_size=1, max_size=3), min_size=1, max_size=8))
    flat = np.array([s for key in keys for s in key], np.int32)
    sums, orders = native_names.hash_names(flat, np.cumsum([0, *map(len, keys)]))
    labels = np.array(draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys))), np.int32)
    order = np.lexsort((labels, sums))
    order = order[np.append(True, (np.diff(sums[order]) != 0) | (np.diff(labels[order]) != 0))]
    hashes, starts = np.unique(sums[order], return_index=True)
    slots = np.full(32, -1, np.int32)
    add_terms(hashes, 0, slots, np.empty_like(hashes), np.empty(len(hashes), np.int32))
    clues = draw(st.lists(st.lists(stem, max_size=2, unique=True), min_size=len(order), max_size=len(order)))
    texts = draw(st.lists(st.lists(st.integers(-7, 5), max_size=12), max_size=4))
    return {
        "codes": np.array([code for text in texts for code in text], np.int32),
        "ptr": np.cumsum([0, *map(len, texts)]).astype(np.int64),
        "titles": np.array([draw(st.integers(0, len(text))) for text in texts], np.int64),
        "most_words": draw(st.integers(1, 4)),
        "hashes": hashes,
        "slots": slots,
        "name_ptr": np.append(starts, len(order)).astype(np.int64),
        "name_labels": labels[order],
        "name_preferred": np.array(
            draw(st.lists(st.integers(0, 1), min_size=len(order), max_size=len(order))), np.int32
        ),
        "name_orders": orders[order],
        "clue_ptr": np.cumsum([0, *map(len, clues)]).astype(np.int64),
        "clues": np.array([clue for group in clues for clue in group], np.int32),
        "n_labels": 5,
        "n_stems": 6,
    }


@few
@given(st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=4), max_size=5))
def test_hash_names(names: list[list[int]]) -> None:
    flat = np.array([stem for name in names for stem in name], np.int32)
    assert_equal(run_both("names", "hash_names", {"stems": flat, "ptr": np.cumsum([0, *map(len, names)])}))


@few
@given(names_and_texts())
def test_match_names(arguments: dict[str, Any]) -> None:
    native, reference = run_both("names", "match_names", arguments)["return"]
    for one, other in zip(native, reference, strict=True):
        np.testing.assert_array_equal(one, other)
