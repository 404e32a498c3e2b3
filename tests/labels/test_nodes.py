from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.labels.index import LabelIndex
from longtail.labels.nodes import Nodes
from longtail.types import LabelMatrix

from ..nn.problems import a_deep_index

# root 9 -> clusters 0, 1 -> clusters 2, 3 below 0; 4 below 1 -> labels 5, 6 below 2; 7 below 3; 8 below 4
SMALL = LabelIndex((np.array([0, 0], np.int32), np.array([0, 0, 1], np.int32), np.array([0, 0, 1, 2], np.int32)))


def test_clusters_are_numbered_before_labels_and_the_root_is_last() -> None:
    nodes = Nodes(SMALL)
    assert (nodes.n, nodes.n_labels, nodes.depth) == (9, 4, 3)
    assert nodes.parent.tolist() == [9, 9, 0, 0, 1, 2, 2, 3, 4]
    assert nodes.ways.tolist() == [[5, 2, 0], [6, 2, 0], [7, 3, 0], [8, 4, 1]]
    assert np.flatnonzero(nodes.only).tolist() == [4, 7, 8]
    assert [level.tolist() for level in nodes.children_by_level()] == [
        [[0, 1]],
        [[2, 3], [4, 9]],
        [[5, 6], [7, 9], [8, 9]],
    ]


def test_a_flat_index_has_labels_alone() -> None:
    nodes = Nodes(LabelIndex.flat(3))
    assert nodes.ways.tolist() == [[0], [1], [2]]
    assert [level.tolist() for level in nodes.children_by_level()] == [[[0, 1, 2]]]


@settings(max_examples=60)
@given(st.integers(0, 2000))
def test_texts_tell_about_the_children_of_what_is_right(seed: int) -> None:
    index, rng = a_deep_index(seed), np.random.default_rng(seed)
    nodes = Nodes(index)
    lists = [rng.choice(13, rng.integers(0, 4), replace=False).tolist() for _ in range(5)]
    texts = np.repeat(np.arange(5), [len(own) for own in lists])
    pairs = nodes.pairs(texts, np.array([label for own in lists for label in own], np.int64), 5)
    expected = []
    for text, own in enumerate(lists):
        right = {int(node) for label in own for node in nodes.ways[label]}
        for node in range(nodes.n):
            parent = int(nodes.parent[node])
            if (parent == nodes.n or parent in right) and (nodes.parent == parent).sum() > 1:
                expected.append((text, node, node in right))
    found = list(zip(pairs.texts.tolist(), pairs.nodes.tolist(), pairs.right.tolist(), strict=True))
    assert sorted(found) == expected
    assert (np.diff(pairs.texts) >= 0).all()


def test_odds_are_those_of_a_node_where_its_parent_is_right() -> None:
    labels = LabelMatrix.from_lists([[0, 1], [0], [2], [3], []], 4)
    odds = Nodes(SMALL).odds(labels)
    share = 1 / (1 + np.exp(-odds))
    assert np.allclose(share[0], 3.5 / 6)  # three of five texts
    assert np.allclose(share[2], 2.5 / 4)  # two of the three
    assert np.allclose(share[6], 1.5 / 3)  # one of the two
