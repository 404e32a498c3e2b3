"""What is counted of labels."""

from __future__ import annotations

import numpy as np
import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.stacking.label_facts import Hierarchy, LabelFacts
from longtail.types import NO_LABEL, LabelMatrix


def test_shares_are_those_counted_text_by_text() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.choice(12, rng.integers(0, 5), replace=False).tolist() for _ in range(60)]
    facts = LabelFacts.of(LabelMatrix.from_lists(rows, 12))
    for given in range(12):
        n_given = sum(given in row for row in rows)
        assert facts.counts[given] == n_given
        for label in set(range(12)) - {given}:
            n_both = sum(given in row and label in row for row in rows)
            share = facts.share(np.array([given]), np.array([label]))[0]
            assert share == pytest.approx(n_both / (n_given + 2), abs=1e-6)


def test_a_label_has_no_share_beside_itself_or_beside_an_empty_place() -> None:
    facts = LabelFacts.of(LabelMatrix.from_lists([[0, 1], [0, 1]], 3))
    assert facts.share(np.array([0, NO_LABEL, 2]), np.array([0, 1, 1])).tolist() == [0, 0, 0]


def test_only_the_most_frequent_partners_of_a_label_are_kept() -> None:
    rows = [[0, label] for label in range(1, 60) for _ in range(2 if label < 33 else 1)]
    facts = LabelFacts.of(LabelMatrix.from_lists(rows, 60))
    kept = [label for label in range(1, 60) if facts.share(np.array([0]), np.array([label]))[0] > 0]
    assert kept == list(range(1, 33))


def test_texts_without_labels_have_no_pairs() -> None:
    facts = LabelFacts.of(LabelMatrix.from_lists([[], []], 3))
    assert facts.share(np.array([0]), np.array([1])).tolist() == [0]


def test_parents_that_are_no_labels_have_numbers_behind_all_labels() -> None:
    vocabulary = Vocabulary.of(["a", "b", "c"], parents={"a": ["b", "top"], "c": ["top"]})
    tree = Hierarchy.of(vocabulary)
    assert tree is not None
    child, parents = tree.above(np.array([2, 0, 1]))
    assert child.tolist() == [0, 1, 1]
    assert parents.tolist() == [3, 1, 3]
    assert tree.n_numbers == 4
    assert Hierarchy.of(Vocabulary.of(["a", "b"])) is None
