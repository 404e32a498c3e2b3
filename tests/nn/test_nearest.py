"""Searching with torch finds what searching with numpy finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from longtail.neighbours import Blocks, NeighbourIndex  # noqa: E402
from longtail.nn.nearest import TorchSearch, gpu_search  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]


SMALL = Blocks(7, 11)
"""So that a few texts make many blocks."""


def crowd(n: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Points along the axes, so that cosines are exact and tie, and some in between; some are zero."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, 1)) < 0.7, np.eye(5)[rng.integers(0, 5, n)], rng.integers(-1, 2, (n, 5))).astype(
        "f4"
    )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [1, 4, 60])
def test_both_find_the_same_with_ties_and_copies(device: str, k: int) -> None:
    pool, asked = crowd(50), crowd(30, 1)
    hashes = np.random.default_rng(2).integers(0, 12, 80).astype(np.uint64)
    index = NeighbourIndex.build(pool, hashes[:50])
    search = TorchSearch(torch.device(device), SMALL)
    for given in (None, hashes[50:]):
        plain, found = index.nearest(asked, k, given), index.nearest(asked, k, given, search=search)
        assert (found.texts.dtype, found.cosines.dtype) == (np.int32, np.float32)
        np.testing.assert_allclose(found.cosines, plain.cosines, 0, 1e-6)
        along = np.abs(asked).sum(axis=1) <= 1  # others' cosines are rounded, each library in its way
        assert np.array_equal(found.texts[along], plain.texts[along])
        assert np.array_equal(found.texts < 0, plain.texts < 0)


def test_a_search_is_used_for_one_pool_after_another() -> None:
    search = TorchSearch(torch.device("cpu"), SMALL)
    for seed in (0, 1, 0):
        index = NeighbourIndex.build(crowd(20, seed), np.arange(20, dtype=np.uint64))
        found = index.nearest(np.eye(5), 3, search=search)
        assert np.array_equal(found.texts, index.nearest(np.eye(5), 3).texts)


def test_a_gpu_is_used_only_where_there_is_one() -> None:
    assert (gpu_search() is not None) == torch.cuda.is_available()
