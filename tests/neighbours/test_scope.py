"""Label scopes: labels of neighbours and their parents (docs/methods/treaderxml.md#teacher, #invariants 2 and 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.neighbours import NeighbourIndex
from longtail.neighbours.scope import LabelParents, Scope, ScopeOptions, parents_of, scope_of, subsuming
from longtail.persist import Folder, write_folder
from longtail.types import LabelMatrix

N_LABELS = 7
label_lists = st.lists(st.lists(st.integers(0, N_LABELS - 1), max_size=4), min_size=1, max_size=12)
parent_lists = st.lists(st.lists(st.integers(0, N_LABELS + 2), max_size=2), min_size=N_LABELS, max_size=N_LABELS)


def vocabulary(parents: dict[str, list[str]] | None = None) -> Vocabulary:
    return Vocabulary.of(list("abcdefg"), {"a": "Apples", "z": "Zoo"}, parents=parents)


def matrix(lists: list[list[int]], n_labels: int = N_LABELS) -> LabelMatrix:
    return LabelMatrix.from_lists(lists, n_labels)


def above(lists: list[list[int]]) -> LabelParents:
    """A hierarchy over seven labels and three parents that are none."""
    return LabelParents(matrix(lists, N_LABELS + 3), tuple("abcdefgxyz"))


def as_sets(scope: Scope) -> list[set[int]]:
    return [set(scope[text].tolist()) for text in range(len(scope))]


def test_parents_come_from_the_vocabulary_and_those_that_are_no_labels_stand_behind() -> None:
    known = vocabulary({"a": ["z", "b"], "c": ["y"], "d": ["d", "a"]})
    made = parents_of(known, matrix([[0]]), ScopeOptions())
    assert made.names == ("Apples", "b", "c", "d", "e", "f", "g", "y", "Zoo")
    assert [made.parents[label].tolist() for label in range(4)] == [[1, 8], [], [7], [0]]
    assert parents_of(known, matrix([[0]]), ScopeOptions(parents="none")).parents.indices.size == 0


@pytest.mark.parametrize("kind", ["auto", "texts"])
def test_without_any_parents_texts_tell_which_label_is_above_which(kind: str) -> None:
    """Label 1 stands in all texts of 0 and in more; 2 in even more; 3 in four of five texts of 4."""
    lists = [[0, 1, 2], [0, 1, 2], [1, 2], [2], *[[3, 4]] * 4, [4], [3, 5], [3]]
    made = parents_of(vocabulary(), matrix(lists), ScopeOptions.of({"parents": kind}))
    found = [made.parents[label].tolist() for label in range(N_LABELS)]
    assert found == [[1], [2], [], [], [3], [3], []]
    known = vocabulary({"a": ["z"]})
    assert parents_of(known, matrix(lists), ScopeOptions()).parents[1].tolist() == []
    assert parents_of(known, matrix(lists), ScopeOptions(parents="texts")).parents[1].tolist() == [2]


@given(label_lists, st.sampled_from([0.5, 0.75, 0.8, 1.0]))
def test_a_parent_by_texts_is_the_least_frequent_label_that_nearly_all_texts_of_its_child_have(
    lists: list[list[int]], share: float
) -> None:
    texts = [set(own) for own in lists]
    counts = [sum(label in own for own in texts) for label in range(N_LABELS)]
    for child, found in enumerate(subsuming(matrix(lists), share).tolist()):
        fit = [
            (counts[label], label)
            for label in range(N_LABELS)
            if counts[label] > counts[child] > 0
            and sum({label, child} <= own for own in texts) / counts[child] >= share
        ]
        assert found == (min(fit)[1] if fit else -1)


@given(label_lists, parent_lists, st.integers(0, 99), st.integers(1, 4))
def test_a_scope_is_the_labels_of_neighbours_and_their_parents_and_nothing_more(
    lists: list[list[int]], parents: list[list[int]], seed: int, k: int
) -> None:
    neighbours = np.random.default_rng(seed).integers(-1, len(lists), (5, k))
    scopes = {
        kind: as_sets(scope_of(neighbours, matrix(lists), above(parents), ScopeOptions.of({"parentless": kind})))
        for kind in ("keep", "drop")
    }
    for text, row in enumerate(neighbours.tolist()):
        own = {label for near in row if near >= 0 for label in lists[near]}
        assert scopes["keep"][text] == own | {parent for label in own for parent in parents[label]}
        own = {label for label in own if parents[label]}
        assert scopes["drop"][text] == own | {parent for label in own for parent in parents[label]}


def test_parents_of_parents_are_left_out() -> None:
    scope = scope_of(np.array([[0]]), matrix([[0]]), above([[1], [2], [3], [], [], [], []]))
    assert scope[0].tolist() == [0, 1]


def test_labels_of_most_and_nearest_neighbours_come_first_then_parents() -> None:
    lists = [[5], [1, 2], [2, 3], [3, 4], []]
    parents = above([[], [9], [8], [9], [4], [], []])
    scope = scope_of(np.array([[1, 2, 3], [3, 2, 1], [4, -1, -1], [-1, -1, -1], [0, 4, 0]]), matrix(lists), parents)
    assert scope[0].tolist() == [2, 3, 1, 4, 9, 8]  # 2 and 3 have two votes, 2 the nearer ones
    assert scope[1].tolist() == [3, 2, 4, 1, 9, 8]
    assert scope[2].tolist() == scope[3].tolist() == []
    assert scope[4].tolist() == [5]


def test_a_limit_is_on_labels_of_neighbours_and_never_parts_a_label_from_its_parents() -> None:
    """docs/methods/treaderxml.md#invariant-4, also where scopes are cut, as they are by default."""
    lists = [[1, 2], [2, 3], [3, 4]]
    parents = above([[], [9], [8], [1], [4], [], []])
    nearest = np.array([[0, 1, 2], [2, 1, 0]])
    cut = scope_of(nearest, matrix(lists), parents, ScopeOptions(max_labels=2))
    assert [cut[text].tolist() for text in range(2)] == [[2, 3, 8, 1], [3, 2, 1, 8]]  # 1 as the parent of 3
    whole, generous = (scope_of(nearest, matrix(lists), parents, ScopeOptions(max_labels=n)) for n in (0, 30))
    assert whole.labels.tolist() == generous.labels.tolist()


def test_scopes_are_the_same_in_any_number_of_pieces() -> None:
    rng = np.random.default_rng(0)
    neighbours, lists = rng.integers(-1, 9, (50, 3)), [rng.integers(0, 7, 3).tolist() for _ in range(9)]
    parents = above([rng.integers(0, 10, 2).tolist() for _ in range(7)])
    whole = scope_of(neighbours, matrix(lists), parents)
    cut = scope_of(neighbours, matrix(lists), parents, at_once=7)
    assert np.array_equal(whole.ptr, cut.ptr)
    assert np.array_equal(whole.labels, cut.labels)
    assert len(scope_of(np.empty((0, 3), int), matrix(lists), parents)) == 0


def test_a_text_that_may_find_itself_is_shown_its_own_labels_and_otherwise_not() -> None:
    """The leak detector of docs/methods/treaderxml.md#invariant-2: it must fire where a text is its own neighbour."""
    rng = np.random.default_rng(1)
    points = rng.standard_normal((40, 5)).astype(np.float32)
    lists = [rng.choice(N_LABELS, 2, replace=False).tolist() for _ in range(40)]
    hashes = np.arange(40, dtype=np.uint64)
    index = NeighbourIndex.build(points, hashes)
    none = LabelParents(matrix([[]] * N_LABELS), tuple("abcdefg"))

    def recall(own: np.ndarray | None) -> float:
        found = index.nearest(points, 1, own)
        shown = as_sets(scope_of(found.texts, matrix(lists), none))
        return float(np.mean([len(shown[text] & set(lists[text])) / 2 for text in range(40)]))

    near = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosine = near @ near.T
    np.fill_diagonal(cosine, -1)
    by_hand = np.mean([len(set(lists[text]) & set(lists[int(cosine[text].argmax())])) / 2 for text in range(40)])
    assert recall(None) == 1.0
    assert recall(hashes) == pytest.approx(by_hand)
    assert by_hand < 0.7


def test_parents_of_all_labels_without_parents_being_dropped_would_leave_nothing() -> None:
    with pytest.raises(ConfigError, match="parentless must be 'keep' where parents are 'none', got 'drop'"):
        ScopeOptions.of({"parents": "none", "parentless": "drop"})


def test_a_stored_hierarchy_is_the_same(tmp_path: Path) -> None:
    known = vocabulary({"a": ["z", "b"]})
    made = parents_of(known, matrix([[0, 1]]), ScopeOptions())
    with write_folder(tmp_path / "h", "test") as writer:
        writer.arrays("parents", made.arrays())
    again = LabelParents.from_arrays(Folder(tmp_path / "h", "test").arrays("parents"), known)
    assert again.names == made.names
    assert [again.parents[label].tolist() for label in range(7)] == [made.parents[label].tolist() for label in range(7)]
