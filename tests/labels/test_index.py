from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.labels.index import LabelIndex, index_of_groups
from longtail.types import LabelMatrix

# Two levels of clusters over seven labels: ((0 1 5) (2)) ((3 6 4))
GROUPS = [
    [np.array([0, 1, 2, 5]), np.array([3, 4, 6])],
    [np.array([0, 1, 5]), np.array([2]), np.array([3, 6, 4])],
]
INDEX = index_of_groups(GROUPS, 7)

label_lists = st.lists(st.sets(st.integers(0, 6)), max_size=8)


def test_groups_become_parents() -> None:
    assert [parent.tolist() for parent in INDEX.parents] == [[0, 0], [0, 0, 1], [0, 0, 1, 2, 2, 0, 2]]
    assert (INDEX.n_labels, INDEX.n_clusters) == (7, 3)
    assert INDEX.sizes().tolist() == [3, 1, 3]


def test_levels_list_the_children_of_each_cluster() -> None:
    levels = INDEX.levels()
    found = [
        [level.children[a:b].tolist() for a, b in zip(level.child_ptr[:-1], level.child_ptr[1:], strict=True)]
        for level in levels
    ]
    assert found == [[[0, 1]], [[0, 1], [2]], [[0, 1, 5], [2], [3, 4, 6]]]
    assert [(level.n_parents, level.n_children) for level in levels] == [(1, 2), (2, 3), (3, 7)]


def test_first_levels_with_few_clusters_can_be_left_out() -> None:
    below = [[parent.tolist() for parent in INDEX.below(n).parents] for n in (1, 2, 3, 4)]
    labels = [0, 0, 1, 2, 2, 0, 2]
    assert below == [[[0, 0], [0, 0, 1], labels], [[0, 0], [0, 0, 1], labels], [[0, 0, 0], labels], [[0] * 7]]


@given(label_lists)
def test_targets_are_the_clusters_above_the_labels(rows: list[set[int]]) -> None:
    targets = list(INDEX.targets(LabelMatrix.from_lists(rows, 7)))
    assert [matrix.n_labels for matrix in targets] == [2, 3, 7]
    for text, labels in enumerate(rows):
        above = {INDEX.parents[2][label] for label in labels}
        assert targets[2][text].tolist() == sorted(labels)
        assert targets[1][text].tolist() == sorted(above)
        assert targets[0][text].tolist() == sorted({INDEX.parents[1][cluster] for cluster in above})


@given(label_lists)
def test_counts_say_how_many_labels_a_text_has_in_each_target(rows: list[set[int]]) -> None:
    labels = LabelMatrix.from_lists(rows, 7)
    for level, (groups, target) in enumerate(zip(GROUPS, INDEX.targets(labels), strict=False)):
        expected = [
            len(rows[text] & set(groups[cluster].tolist())) for text in range(len(rows)) for cluster in target[text]
        ]
        assert INDEX.counts(labels, level).tolist() == expected
    assert INDEX.counts(labels, 2).tolist() == [1] * len(labels.indices)


def test_a_cluster_without_labels_keeps_its_number() -> None:
    index = LabelIndex((np.zeros(3, np.int32), np.array([0, 1, 1], np.int32)))
    labels = LabelMatrix.from_lists([[0, 2]], 3)
    assert next(index.targets(labels)).n_labels == 3
    assert index.levels()[1].n_parents == 3
    assert index.sizes().tolist() == [1, 2, 0]


def test_a_flat_index_has_all_labels_under_the_root() -> None:
    index = LabelIndex.flat(4)
    assert (index.n_labels, index.n_clusters) == (4, 1)
    assert len(index.levels()) == len(list(index.targets(LabelMatrix.from_lists([[1]], 4)))) == 1


def test_arrays_bring_back_the_index() -> None:
    back = LabelIndex.from_arrays(INDEX.arrays())
    for mine, theirs in zip(INDEX.parents, back.parents, strict=True):
        np.testing.assert_array_equal(mine, theirs)
