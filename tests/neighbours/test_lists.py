"""Lists of near points: exact when all are searched, nearly so when few are."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.errors import MissingExtraError
from longtail.mapped_arrays import map_arrays, store_arrays
from longtail.neighbours import NeighbourIndex, Neighbours, NeighbourSearchOptions

N = 1500


def crowd() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Points around some centres, and hashes by which some texts have up to 30 copies."""
    rng = np.random.default_rng(0)
    content = np.where(rng.random(N) < 0.1, rng.integers(0, 5, N), np.arange(N))
    made = rng.standard_normal((20, 16))[rng.integers(0, 20, N)] + 0.5 * rng.standard_normal((N, 16))
    return made.astype(np.float32)[content], content.astype(np.uint64)


def found_by(index: NeighbourIndex, points: np.ndarray[Any, Any], hashes: Any = None) -> Neighbours:
    return index.nearest(points, 10, hashes)


@pytest.fixture
def lists() -> NeighbourSearchOptions:
    pytest.importorskip("faiss")
    return NeighbourSearchOptions(kind="faiss", n_lists=30, n_probed=30)


def test_all_lists_find_what_is_exact_without_copies(lists: NeighbourSearchOptions) -> None:
    points, hashes = crowd()
    exact = found_by(NeighbourIndex.build(points, hashes), points, hashes)
    nearly = found_by(NeighbourIndex.build(points, hashes, lists), points, hashes)
    np.testing.assert_allclose(nearly.cosines, exact.cosines, 0, 1e-5)
    assert np.array_equal(hashes[nearly.texts], hashes[exact.texts])  # which of some copies, rounding decides
    assert not (hashes[nearly.texts] == hashes[:, None]).any()


def test_few_lists_find_most(lists: NeighbourSearchOptions) -> None:
    points, hashes = crowd()
    exact = found_by(NeighbourIndex.build(points, hashes), points)
    nearly = found_by(NeighbourIndex.build(points, hashes, lists.model_copy(update={"n_probed": 3})), points)
    shared = [len(set(a) & set(b)) / 10 for a, b in zip(exact.texts.tolist(), nearly.texts.tolist(), strict=True)]
    assert 0.8 < np.mean(shared) < 1


def test_lists_are_stored_as_an_array(lists: NeighbourSearchOptions, tmp_path: Path) -> None:
    points, hashes = crowd()
    index = NeighbourIndex.build(points, hashes, lists)
    store_arrays(tmp_path / "pool.safetensors", index.arrays())
    again = NeighbourIndex.from_arrays(map_arrays(tmp_path / "pool.safetensors"), points.shape[1], lists)
    one, two = found_by(index, points, hashes), found_by(again, points, hashes)
    assert np.array_equal(one.texts, two.texts)
    assert one.cosines.tobytes() == two.cosines.tobytes()


def test_a_pool_that_is_smaller_than_asked_for_leaves_places_empty(lists: NeighbourSearchOptions) -> None:
    points, _ = crowd()
    index = NeighbourIndex.build(points[:4], np.arange(4, dtype=np.uint64), lists)
    found = found_by(index, points[:4], np.arange(4, dtype=np.uint64))
    assert ((found.texts >= 0).sum(axis=1) == 3).all()
    assert np.isneginf(found.cosines[found.texts < 0]).all()


def test_without_faiss_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    points, hashes = crowd()
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[ann\]'"):
        NeighbourIndex.build(points, hashes, NeighbourSearchOptions(kind="faiss"))
