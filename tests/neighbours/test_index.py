"""The nearest texts, dense and sparse, beside the plainest way to find them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import ConfigError, DataError, ModelFormatError
from longtail.kernels.rows import Rows
from longtail.neighbours import Blocks, NeighbourIndex, Neighbours, NeighbourSearchOptions
from longtail.run.local import LocalEngine
from longtail.run.run import Run

KINDS = ["dense", "sparse"]


SMALL = Blocks(7, 11)
"""So that a few texts make many blocks."""


def numbers(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Points of small whole numbers, some of them equal, some empty: cosines tie."""
    rng = np.random.default_rng(seed)
    made = rng.integers(-1, 3, (n, 6)) * (rng.random((n, 6)) < 0.5)
    made[rng.random(n) < 0.1] = 0
    return made.astype(np.float32)


def points_of(kind: str, made: np.ndarray[Any, Any]) -> Any:
    return Rows.of(sp.csr_matrix(made)) if kind == "sparse" else made


def cosines(one: np.ndarray[Any, Any], two: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    lengths = [np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-9) for points in (one, two)]
    return (one / lengths[0]) @ (two / lengths[1]).T


def assert_nearest(found: Neighbours, every: np.ndarray[Any, Any]) -> None:
    """`found` holds the largest of `every` (n, n_pool), −inf for those that may not be found."""
    k = found.texts.shape[1]
    n_allowed = np.minimum(np.isfinite(every).sum(axis=1), k)
    assert ((found.texts >= 0) == (np.arange(k) < n_allowed[:, None])).all()
    assert np.isneginf(found.cosines[found.texts < 0]).all()
    best = -np.sort(-every, axis=1)[:, :k]
    real = found.texts >= 0
    np.testing.assert_allclose(found.cosines[real], best[:, : found.texts.shape[1]][real[:, : best.shape[1]]], 0, 2e-6)
    for row, texts in enumerate(found.texts):
        own = texts[texts >= 0]
        assert len(set(own.tolist())) == len(own)
        np.testing.assert_allclose(every[row, own], found.cosines[row, : len(own)], 0, 2e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 3, 40, 70])
@pytest.mark.parametrize("seed", range(3))
def test_the_k_nearest_are_found(kind: str, k: int, seed: int) -> None:
    pool, asked = numbers(60, seed), numbers(25, seed + 10)
    index = NeighbourIndex.build(points_of(kind, pool), np.arange(60, dtype=np.uint64))
    found = index.nearest(points_of(kind, asked), k, blocks=SMALL)
    assert found.texts.shape == found.cosines.shape == (25, k)
    assert (found.texts.dtype, found.cosines.dtype) == (np.int32, np.float32)
    assert_nearest(found, cosines(asked, pool))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 5, 60])
def test_texts_of_the_same_content_are_never_neighbours_however_many_there_are(kind: str, k: int) -> None:
    rng = np.random.default_rng(0)
    content = rng.integers(0, 12, 60)
    content[:25] = 3  # more copies than neighbours are asked for
    pool = numbers(12, 5)[content]
    hashes = (content * 7 + 2).astype(np.uint64)
    index = NeighbourIndex.build(points_of(kind, pool), hashes)
    found = index.nearest(points_of(kind, pool), k, hashes, blocks=SMALL)
    every = np.where(content[:, None] == content[None, :], -np.inf, cosines(pool, pool))
    assert_nearest(found, every)
    assert not (hashes[found.texts] == hashes[:, None])[found.texts >= 0].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_is_not_in_the_pool_loses_no_neighbour(kind: str) -> None:
    pool, asked = numbers(30), numbers(9, 1)
    index = NeighbourIndex.build(points_of(kind, pool), np.arange(30, dtype=np.uint64))
    new = np.arange(100, 109, dtype=np.uint64)
    one, two = (
        index.nearest(points_of(kind, asked), 5, new, blocks=SMALL),
        index.nearest(points_of(kind, asked), 5, blocks=SMALL),
    )
    assert np.array_equal(one.texts, two.texts)


@pytest.mark.parametrize("kind", KINDS)
def test_ties_go_to_the_smaller_number_and_zeros_have_cosine_zero(kind: str) -> None:
    pool = np.array([[0, 1], [1, 0], [2, 0], [0, 0], [1, 0], [1, 0]] * 4, np.float32)
    index = NeighbourIndex.build(points_of(kind, pool), np.arange(24, dtype=np.uint64))
    found = index.nearest(points_of(kind, np.array([[3, 0], [0, 0]], np.float32)), 19, blocks=SMALL)
    units = [number for number in range(24) if number % 6 in (1, 2, 4, 5)]
    assert found.texts[0].tolist() == [*units, 0, 3, 6]
    assert found.texts[1].tolist() == list(range(19))
    assert found.cosines[0].tolist() == [1.0] * 16 + [0.0] * 3
    assert found.cosines[1].tolist() == [0.0] * 19


@pytest.mark.parametrize("kind", KINDS)
def test_copies_come_in_their_order_however_products_are_rounded(kind: str) -> None:
    rng = np.random.default_rng(0)
    content = rng.integers(0, 20, 90)
    pool, asked = rng.standard_normal((20, 6)).astype(np.float32)[content], rng.standard_normal((40, 6)).astype("f4")
    index = NeighbourIndex.build(points_of(kind, pool), np.arange(90, dtype=np.uint64))
    found = index.nearest(points_of(kind, asked), 6, blocks=SMALL)
    for row in range(40):
        own = found.texts[row].tolist()
        order = np.argsort(-cosines(asked[row : row + 1], pool)[0].round(6), kind="stable")[:6]
        assert own == order.tolist()
        alone = index.nearest(points_of(kind, asked[row : row + 1]), 6, blocks=SMALL)
        assert alone.texts[0].tolist() == own
        assert alone.cosines.tobytes() == found.cosines[row].tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_cosines_are_symmetric_one_with_itself_and_blind_to_length(kind: str) -> None:
    pool = numbers(40)
    pool = pool[(pool != 0).any(axis=1)]
    hashes = np.arange(len(pool), dtype=np.uint64)

    def matrix(scale: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        index = NeighbourIndex.build(points_of(kind, pool * scale), hashes)
        found = index.nearest(points_of(kind, pool), len(pool), blocks=SMALL)
        made = np.empty((len(pool), len(pool)), np.float32)
        np.put_along_axis(made, found.texts.astype(np.int64), found.cosines, axis=1)
        return made

    plain = matrix(np.ones((len(pool), 1), np.float32))
    np.testing.assert_allclose(plain, plain.T, 0, 1e-6)
    np.testing.assert_allclose(np.diag(plain), 1, 0, 1e-6)
    np.testing.assert_allclose(matrix(np.arange(1, len(pool) + 1, dtype=np.float32)[:, None]), plain, 0, 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_finds_the_same_for_any_number_of_threads(kind: str) -> None:
    pool = points_of(kind, numbers(60))
    hashes = np.repeat(np.arange(30, dtype=np.uint64), 2)
    index = NeighbourIndex.build(pool, hashes)
    again = NeighbourIndex.from_arrays(index.arrays(), numbers(60).shape[1], NeighbourSearchOptions())
    one = index.nearest(pool, 4, hashes, run=Run(LocalEngine(1)), blocks=SMALL)
    two = again.nearest(pool, 4, hashes, run=Run(LocalEngine(3)), blocks=SMALL)
    assert np.array_equal(one.texts, two.texts)
    assert one.cosines.tobytes() == two.cosines.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_asked_finds_nothing(kind: str) -> None:
    index = NeighbourIndex.build(points_of(kind, numbers(5)), np.arange(5, dtype=np.uint64))
    assert len(index) == 5
    assert index.nearest(points_of(kind, numbers(0)), 3, blocks=SMALL).texts.shape == (0, 3)


@pytest.mark.parametrize(
    ("name", "at", "value"), [("ptr", 0, 1), ("ptr", 2, 0), ("ptr", -1, 10**6), ("texts", 0, 60), ("texts", 3, -1)]
)
def test_a_stored_pool_with_damaged_numbers_is_refused(name: str, at: int, value: int) -> None:
    points, hashes = points_of("sparse", numbers(60)), np.arange(60, dtype=np.uint64)
    arrays = {key: array.copy() for key, array in NeighbourIndex.build(points, hashes).arrays().items()}
    arrays[name][at] = value
    with pytest.raises(ModelFormatError, match=r"the pool is damaged: .* must .*copy the model folder again"):
        NeighbourIndex.from_arrays(arrays, numbers(60).shape[1])


def test_what_does_not_fit_is_refused() -> None:
    hashes = np.arange(4, dtype=np.uint64)
    index = NeighbourIndex.build(numbers(4), hashes)
    few = NeighbourIndex.build(points_of("sparse", numbers(4)), hashes)
    with pytest.raises(ConfigError, match="number of neighbours must be at least 1, got 0"):
        index.nearest(numbers(4), 0, blocks=SMALL)
    with pytest.raises(DataError, match=r"hashes must be as many as points, got 3 and 4"):
        NeighbourIndex.build(numbers(4), hashes[:3])
    with pytest.raises(DataError, match="hashes must be as many"):
        index.nearest(numbers(4), 1, hashes[:3], blocks=SMALL)
    with pytest.raises(DataError, match=r"shape \(n, 6\).*got \(4, 5\)"):
        index.nearest(numbers(4)[:, :5], 1, blocks=SMALL)
    with pytest.raises(DataError, match=r"shape \(n, 6\).*got 6 sparse columns"):
        index.nearest(points_of("sparse", numbers(4)), 1, blocks=SMALL)
    with pytest.raises(DataError, match=r"6 columns.*got dense ones of shape \(4, 6\)"):
        few.nearest(numbers(4), 1, blocks=SMALL)
    with pytest.raises(DataError, match=r"6 columns.*got 5"):
        few.nearest(points_of("sparse", numbers(4)[:, :5]), 1, blocks=SMALL)
    for kind in KINDS:
        with pytest.raises(DataError, match="must be numbers, got NaN"):
            NeighbourIndex.build(points_of(kind, np.full((4, 6), np.nan)), hashes)
    with pytest.raises(ConfigError, match=r"search\.kind must be exact for sparse points, got faiss"):
        NeighbourIndex.build(points_of("sparse", numbers(4)), hashes, NeighbourSearchOptions(kind="faiss"))
