"""Labels that were added after training, and labels that are shown as others, in ranked lists."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.vocabulary import Vocabulary
from longtail.labels.edits import LabelEdit
from longtail.labels.model_labels import ModelLabels
from longtail.labels.name_matches import NameOptions
from longtail.labels.new_names import NameOdds
from longtail.scores.chain import Chain
from longtail.scores.edits import Edits
from longtail.scores.new_labels import NewScores, learn_new_labels, prototype, texts_to_ask
from longtail.types import NO_LABEL, LabelMatrix, TopK

LABELS = ModelLabels(Vocabulary.of(list("abcdef")), np.ones(6, np.int64), np.arange(6, dtype=np.int32), 10)


def lists(labels: list[list[int]], scores: list[list[float]]) -> TopK:
    return TopK(np.array(labels, np.int32), np.array(scores, np.float32))


def asked(whole: TopK):  # type: ignore[no-untyped-def]
    return lambda n, rows=None: TopK(
        *(values if rows is None else values[rows] for values in vars(whole.first(n)).values())
    )


def test_a_merged_label_keeps_the_better_score_of_both() -> None:
    step = Edits(history=(LabelEdit(action="merge", label="a", into="c"),))
    whole = lists([[0, 1, 2, 3], [1, 3, 4, 5]], [[0.9, 0.8, 0.7, 0.6], [0.5, 0.4, 0.3, 0.2]])
    best = Chain((step,)).top_k(asked(whole), 3, LABELS)
    assert best.labels.tolist() == [[2, 1, 3], [1, 3, 4]]
    assert best.scores.tolist() == whole.scores[[[0], [1]], [[0, 1, 3], [0, 1, 2]]].tolist()


def test_what_is_allowed_is_asked_of_labels_as_they_are_shown() -> None:
    step = Edits(history=(LabelEdit(action="merge", label="a", into="c"), LabelEdit(action="retire", label="b")))
    whole = lists([[0, 1, 2, 3]], [[0.9, 0.8, 0.7, 0.6]])
    chain = Chain((step,))
    assert chain.top_k(asked(whole), 3, LABELS).labels.tolist() == [[2, 3, NO_LABEL]]
    assert chain.with_call(allow=["c"]).top_k(asked(whole), 2, LABELS).labels.tolist() == [[2, NO_LABEL]]
    assert chain.with_call(deny=["c"]).top_k(asked(whole), 2, LABELS).labels.tolist() == [[3, NO_LABEL]]


@given(st.data())
def test_new_labels_are_merged_by_score_and_old_ones_keep_theirs(data: st.DataObject) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    n, k, n_new = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    scores = -np.sort(-rng.random((n, k)).astype(np.float32), axis=1)
    old = TopK(np.stack([rng.permutation(6)[:k] for _ in range(n)]).astype(np.int32), scores)
    new = NewScores(np.arange(10, 10 + n_new, dtype=np.int32), rng.random((n, n_new)).astype(np.float32))
    merged = new.merged_into(old, k, None)
    for row in range(n):
        every = {**dict(zip(old.labels[row].tolist(), scores[row].tolist(), strict=True))}
        every |= dict(zip(new.labels.tolist(), new.probabilities[row].tolist(), strict=True))
        expected = sorted(every, key=lambda label: -every[label])[:k]
        assert merged.labels[row].tolist() == expected
        assert merged.scores[row].tolist() == [every[label] for label in expected]


def test_labels_that_texts_name_are_merged_where_they_are_allowed() -> None:
    old = lists([[0, 1], [2, NO_LABEL]], [[0.9, 0.3], [0.6, -np.inf]])
    named = lists([[11, 10], [NO_LABEL, NO_LABEL]], [[0.5, 0.4], [-np.inf, -np.inf]])
    new = NewScores(np.empty(0, np.int32), np.empty((2, 0), np.float32), named)
    merged = new.merged_into(old, 3, None)
    assert merged.labels.tolist() == [[0, 11, 10], [2, NO_LABEL, NO_LABEL]]
    allowed = np.arange(12) != 11
    assert new.merged_into(old, 3, allowed).labels.tolist() == [[0, 10, 1], [2, NO_LABEL, NO_LABEL]]


def test_examples_and_name_together_tell_more_than_either() -> None:
    rng = np.random.default_rng(0)
    n_texts, n_labels = 2000, 30
    labels = [[int(label)] for label in rng.integers(0, n_labels, n_texts)]
    vectors = np.array([np.eye(n_labels)[one[0]] + 0.8 * rng.random(n_labels) for one in labels])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = texts_to_ask(n_texts)
    truth = np.zeros((n_texts, n_labels), bool)
    truth[np.arange(n_texts), [one[0] for one in labels]] = True
    odds = sp.csr_matrix(np.where(truth, 1.0, -1.0) + rng.normal(size=truth.shape) * 0.5)
    of_names = NameOdds(reader=NameOptions(), weights=(0.0,) * 12)
    step = learn_new_labels(
        LabelMatrix.from_lists(labels, n_labels),
        lambda rows: vectors[rows].astype(np.float32),
        0,
        (of_names, odds[asked]),
    )
    assert step is not None
    assert step.names == of_names
    both = [step.with_name(np.array([p], np.float32), np.array([name]))[0] for p in (0.1, 0.6) for name in (-1.0, 1.0)]
    assert both[0] < min(both[1], both[2]) < max(both[1], both[2]) < both[3]


def test_terms_that_all_examples_share_count_most() -> None:
    vectors = sp.csr_matrix(np.array([[0.6, 0.8, 0.0], [0.6, 0.0, 0.8]]))
    assert prototype(vectors).argmax() == 0
    assert np.linalg.norm(prototype(vectors)) == pytest.approx(1)


@pytest.mark.parametrize("sparse", [True, False])
def test_the_curve_tells_texts_that_have_a_label_from_others(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    n_labels, n_texts = 20, 600
    topics = np.eye(n_labels)
    labels = [[int(label)] for label in rng.integers(0, n_labels, n_texts)]
    vectors = np.array([topics[one[0]] + 0.1 * rng.random(n_labels) for one in labels])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given = sp.csr_matrix(vectors) if sparse else vectors.astype(np.float32)
    step = learn_new_labels(LabelMatrix.from_lists(labels, n_labels), lambda rows: given[rows])
    assert step is not None
    low, high = step.probability(np.array([0.1, 0.99], np.float32))
    assert low < 0.05
    assert high > 0.9


def test_too_few_texts_give_no_curve() -> None:
    labels = LabelMatrix.from_lists([[0], [1], [0]], 2)
    assert learn_new_labels(labels, lambda rows: np.eye(3, dtype=np.float32)[rows]) is None
