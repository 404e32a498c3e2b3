"""Label trees of every size and shape (docs/methods/xbert.md#invariants 1 to 3)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.errors import ConfigError
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree, even_index
from longtail.run.local import LocalEngine
from longtail.run.run import Run

ONE = Run(LocalEngine(1))
SHAPES: list[dict[str, Any]] = [
    {},
    {"fill": False},
    {"max_leaf": 3},
    {"max_leaf": 1},
    {"max_leaf": 1, "fill": False},
    {"n_levels": 0},
    {"n_levels": 1},
    {"n_levels": 3, "max_leaf": 2},
    {"branching": 2, "max_leaf": 4, "fill": False},
    {"branching": 4, "max_leaf": 4},
    {"branching": 16, "max_leaf": 2},
    {"geometry": "euclidean", "stop": "scores", "tolerance": 0.01},
    {"stop": "members"},
    {"balanced": False, "branching": 4, "n_levels": 3, "max_leaf": 4},
    {"balanced": False, "branching": 100},
]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def vectors(n_labels: int, seed: int = 0) -> sp.csr_matrix:
    dense = np.abs(sp.random(n_labels, 30, 0.3, random_state=seed).toarray())
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    return sp.csr_matrix((dense / np.where(lengths > 0, lengths, 1)).astype(np.float32))


def assert_same(found: LabelIndex, expected: LabelIndex) -> None:
    for mine, theirs in zip(found.parents, expected.parents, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_is_a_tree(index: LabelIndex, n_labels: int) -> None:
    levels = index.levels()
    assert levels[0].n_parents == 1
    assert levels[-1].n_children == index.n_labels == n_labels
    for above, below in pairwise(levels):
        assert above.n_children == below.n_parents
    for level in levels:
        assert sorted(level.children.tolist()) == list(range(level.n_children))  # each child has one parent
        assert (np.diff(level.child_ptr) > 0).all()  # and no cluster is empty
    for level in levels[:-1]:
        assert level.children.tolist() == list(range(level.n_children))  # children of a cluster are neighbours


@every_shape
def test_every_number_of_labels_works(shape: dict[str, Any]) -> None:
    for n_labels in range(1, 71):
        assert_is_a_tree(build_tree(vectors(n_labels), TreeOptions(**shape), run=ONE), n_labels)


@every_shape
def test_labels_that_cannot_be_told_apart_are_no_problem(shape: dict[str, Any]) -> None:
    nothing, same = sp.csr_matrix((40, 30), dtype=np.float32), vectors(1)[np.zeros(40, int)]
    for alike in (nothing, same):
        index = build_tree(alike, TreeOptions(**shape), run=ONE)
        assert_is_a_tree(index, 40)
        assert len(index.parents) <= 7


@pytest.mark.parametrize("max_leaf", [1, 2, 3, 16])
def test_halved_leaves_differ_by_one_at_most(max_leaf: int) -> None:
    for n_labels in range(1, 71):
        shape = TreeOptions(branching=2, fill=False, max_leaf=max_leaf)
        index = build_tree(vectors(n_labels), shape, run=ONE)
        depth = len(index.parents) - 1
        sizes = index.sizes()
        assert sizes.max() <= max_leaf
        expected = {max(n_labels // 2**depth, 1), -(-n_labels // 2**depth)}
        assert set(sizes.tolist()) <= expected
        if n_labels % 2**depth == 0 or max_leaf > 1:
            for parent in index.parents[1:-1]:  # code // 2 is the parent, at every level
                np.testing.assert_array_equal(parent, np.arange(len(parent)) // 2)


@pytest.mark.parametrize("max_leaf", [1, 3, 16])
def test_filled_leaves_are_full_but_for_one(max_leaf: int) -> None:
    for n_labels in range(max_leaf + 1, 71):
        sizes = build_tree(vectors(n_labels), TreeOptions(max_leaf=max_leaf), run=ONE).sizes()
        assert len(sizes) == -(-n_labels // max_leaf)
        assert (sizes == max_leaf).sum() >= len(sizes) - 1
        assert sizes.max() == max_leaf


def test_the_number_of_levels_is_what_was_asked_for() -> None:
    for n_levels in range(4):
        index = build_tree(vectors(70), TreeOptions(n_levels=n_levels, max_leaf=2), run=ONE)
        assert len(index.parents) == n_levels + 1
    assert len(build_tree(vectors(16), TreeOptions(n_levels=3), run=ONE).parents) == 1  # one leaf is no cluster


@pytest.mark.parametrize("max_children", [2, 3, 8, 50])
def test_there_are_more_levels_where_clusters_would_have_too_many_children(max_children: int) -> None:
    for n_labels in (5, 33, 64, 70, 400):
        options = TreeOptions(max_leaf=2, max_children=max_children)
        index = build_tree(vectors(n_labels), options, run=ONE)
        for level in index.levels()[:-1]:
            assert np.diff(level.child_ptr).max() <= max_children
        shape = [len(parent) for parent in even_index(n_labels, options).parents]
        assert shape == [len(parent) for parent in index.parents]


def test_a_tree_whose_clusters_are_narrow_enough_is_the_same_with_max_children() -> None:
    plain, narrow = (build_tree(vectors(70), TreeOptions(max_leaf=2, max_children=m), run=ONE) for m in (None, 8))
    for one, other in zip(plain.parents, narrow.parents, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("branching", [2, 4, 16])
def test_no_cluster_has_more_children_than_branching(branching: int) -> None:
    for n_labels in (5, 33, 64, 70):
        index = build_tree(vectors(n_labels), TreeOptions(branching=branching, max_leaf=2), run=ONE)
        for level in index.levels()[:-1]:
            assert np.diff(level.child_ptr).max() <= branching


def test_plain_k_means_splits_into_at_most_branching_clusters() -> None:
    index = build_tree(vectors(70), TreeOptions(balanced=False, branching=5, n_levels=2, max_leaf=4), run=ONE)
    for level in index.levels()[:-1]:
        assert np.diff(level.child_ptr).max() <= 5
    assert len(set(index.sizes().tolist())) > 2  # of any size


@every_shape
def test_the_order_of_features_does_not_matter(shape: dict[str, Any]) -> None:
    points = vectors(50)
    moved = sp.csr_matrix(points[:, np.random.default_rng(0).permutation(30)])
    assert_same(build_tree(moved, TreeOptions(**shape), run=ONE), build_tree(points, TreeOptions(**shape), run=ONE))


@every_shape
def test_threads_and_a_second_run_give_the_same_tree(shape: dict[str, Any]) -> None:
    points = vectors(70)
    runs = [build_tree(points, TreeOptions(**shape), seed=5, run=Run(LocalEngine(n))) for n in (1, 2, 3)]
    assert_same(runs[1], runs[0])
    assert_same(runs[2], runs[0])


def test_another_seed_gives_another_tree() -> None:
    found = [build_tree(vectors(70), TreeOptions(), seed=seed, run=ONE).parents[-1].tolist() for seed in range(3)]
    assert found[0] != found[1] != found[2]


@pytest.mark.parametrize("balanced", [True, False])
def test_similar_labels_share_a_cluster(balanced: bool) -> None:
    topic = np.repeat(np.arange(4), 8)
    rng = np.random.default_rng(0)
    dense = np.eye(4)[topic].repeat(3, axis=1) * rng.uniform(0.5, 1, (32, 12))
    points = sp.csr_matrix((dense / np.linalg.norm(dense, axis=1, keepdims=True)).astype(np.float32))
    order = rng.permutation(32)
    options = TreeOptions(branching=2, balanced=balanced, n_levels=8, max_leaf=8)
    index = build_tree(sp.csr_matrix(points[order]), options, run=ONE)
    for cluster in range(index.n_clusters):
        assert len(set(topic[order][index.parents[-1] == cluster].tolist())) == 1


def test_a_balanced_tree_has_powers_of_two_as_branching() -> None:
    with pytest.raises(ConfigError, match="branching must be a power of two"):
        TreeOptions.of({"branching": 100})
    assert TreeOptions.of({"branching": 100, "balanced": False}).branching == 100


@every_shape
@pytest.mark.parametrize("n_labels", [1, 2, 17, 100, 333])
def test_the_shape_of_a_tree_is_known_before_it_is_grown(shape: dict[str, Any], n_labels: int) -> None:
    options = TreeOptions.of(shape)
    expected = build_tree(vectors(n_labels), options, run=ONE)
    found = even_index(n_labels, options)
    assert_is_a_tree(found, n_labels)
    if options.balanced:
        assert [len(parent) for parent in found.parents] == [len(parent) for parent in expected.parents]


@pytest.mark.parametrize(("n_labels", "smallest", "largest"), [(667_317, 81, 82), (501_008, 61, 62)])
def test_clusters_are_as_many_and_as_large_as_lightxml_has(n_labels: int, smallest: int, largest: int) -> None:
    """Amazon-670K and Wiki-500K: sizes within one of each other, and none below half of what is allowed.

    Specified in docs/methods/lightxml.md#invariant-1.
    """
    found = even_index(n_labels, TreeOptions(n_levels=1, max_leaf=100, fill=False))
    sizes = np.bincount(found.parents[-1])
    assert found.n_clusters == 8_192
    assert (sizes.min(), sizes.max()) == (smallest, largest)


@pytest.mark.parametrize("n_labels", [201, 333, 1000])
def test_halved_leaves_are_never_halved_once_too_often(n_labels: int) -> None:
    built = build_tree(vectors(n_labels), TreeOptions(n_levels=1, max_leaf=100, fill=False), run=ONE)
    assert np.bincount(built.parents[-1]).min() >= 50
