"""What a ranker is told of candidates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from longtail.data.dataset import as_table
from longtail.data.vocabulary import Vocabulary
from longtail.stacking.candidates import Candidates
from longtail.stacking.features import (
    ABSENT,
    Evidence,
    candidate_features,
    n_features,
    precision_of_labels,
    text_lengths,
)
from longtail.stacking.label_facts import Hierarchy, LabelFacts
from longtail.types import LabelMatrix, TopK

TRAIN = LabelMatrix.from_lists([[0, 1], [0, 1], [0], [2, 3]], 4)
VOCABULARY = Vocabulary.of(["a", "b", "c", "d"], parents={"b": ["a"], "c": ["top"], "d": ["top"]})


def lists(labels: list[list[int]], scores: list[list[float]]) -> TopK:
    return TopK(np.array(labels, np.int32), np.array(scores, np.float32))


def logit(score: float) -> float:
    return math.log(score / (1 - score))


ONE = lists([[0, 2], [3, 2]], [[0.9, 0.2], [0.6, 0.5]])
OTHER = lists([[1, -1], [2, -1]], [[0.7, -np.inf], [0.8, -np.inf]])
CANDIDATES = Candidates.of([ONE, OTHER], 4)  # text 0: a b c, text 1: c d


def features(hierarchy: Hierarchy | None = None) -> np.ndarray:
    evidence = Evidence(LabelFacts.of(TRAIN), hierarchy, np.array([[0.1, 0.2, 0.3, 0.4]] * 2, np.float32))
    return candidate_features(CANDIDATES, [ONE, OTHER], np.array([2.0, 3.0], np.float32), evidence)


def test_each_member_tells_logit_rank_distance_to_its_best_and_precision() -> None:
    table = features()
    assert table.shape == (5, n_features(2, has_hierarchy=False))
    assert table[0, :4] == pytest.approx([logit(0.9), 1, 0, 0.1], abs=1e-5)
    assert table[2, :4] == pytest.approx([logit(0.2), 1 / 2, logit(0.2) - logit(0.9), 0.3], abs=1e-5)
    assert table[0, 4:8] == pytest.approx([ABSENT, 0, ABSENT - logit(0.7), 0.1], abs=1e-5)


def test_label_text_and_number_of_candidates_are_told() -> None:
    table = features()
    assert table[:, 8] == pytest.approx(np.log(np.array([4, 3, 2, 2, 2]) / 4))
    assert table[:, 9].tolist() == [3, 3, 3, 2, 2]
    assert table[:, 10].tolist() == [2, 2, 2, 3, 3]


def test_labels_are_told_how_often_they_stand_beside_the_best_candidates() -> None:
    table = features()
    # By mean logit text 0 has a, b, c and text 1 has c, d. P(b | a) = 2 / (3 + 2), P(a | b) = 2 / (2 + 2).
    assert table[0, 11:14] == pytest.approx([0, 2 / 4, 0])
    assert table[1, 11:14] == pytest.approx([2 / 5, 0, 0])
    assert table[2, 11:15].tolist() == [0, 0, 0, 0]
    assert table[4, 11] == pytest.approx(1 / 3)
    assert 0 < table[1, 14] < table[1, 11]


def test_parents_children_and_siblings_among_the_candidates_are_told() -> None:
    table = features(Hierarchy.of(VOCABULARY))
    assert table.shape == (5, n_features(2, has_hierarchy=True))
    mean_a, mean_b = (logit(0.9) + ABSENT) / 2, (logit(0.7) + ABSENT) / 2
    assert table[0, 15:] == pytest.approx([ABSENT, mean_b, 0], abs=1e-5)
    assert table[1, 15:] == pytest.approx([mean_a, ABSENT, 0], abs=1e-5)
    assert table[3, 15:].tolist() == [ABSENT, ABSENT, 0]
    assert table[4, 17] == pytest.approx((logit(0.5) + logit(0.8) - logit(0.6) - ABSENT) / 2, abs=1e-5)


def test_precision_is_smoothed_towards_that_of_all_labels() -> None:
    labels = LabelMatrix.from_lists([[0], [2]], 4)
    proposed = lists([[0, 1], [0, 2]], [[0.5, 0.5]] * 2)
    precision = precision_of_labels(proposed, labels, np.ones(4, bool))
    assert precision == pytest.approx([(1 + 2.5) / 7, 2.5 / 6, 3.5 / 6, 0.5])
    some_are_new = precision_of_labels(proposed, labels, np.array([True, False, False, True]))
    assert some_are_new == pytest.approx([(1 + 2.5) / 7, 0.5, 0.5, 0.5])


def test_the_length_of_a_text_is_that_of_all_its_columns() -> None:
    table = as_table(["abc", ""]).append_column("title", [["de", "f"]])
    assert text_lengths(table) == pytest.approx(np.log1p([5, 1]))
