"""Score steps in a row: how long lists are, what a call changes, what is saved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.propensity import Propensity
from longtail.scores.call import Call
from longtail.scores.chain import Chain
from longtail.scores.display import Display
from longtail.scores.tail import Tail, favour_tail
from longtail.scores.threshold import Threshold
from longtail.types import NO_LABEL, TopK

N_LABELS = 300
COUNTS = np.arange(1, N_LABELS + 1)
LABELS = ModelLabels(
    Vocabulary.of([f"l{number}" for number in range(N_LABELS)]), COUNTS, np.arange(N_LABELS, dtype=np.int32), 1000
)
CHAIN = Chain((Tail(), Display(power=4)))


def lists(n: int, rows: np.ndarray | None = None) -> TopK:
    """Labels from the most frequent one down."""
    labels = np.arange(N_LABELS, dtype=np.int32)[None, ::-1][:, :n]
    scores = np.linspace(0.9, 0.1, N_LABELS, dtype=np.float32)[None, :n]
    return TopK(labels, scores)


def test_a_chain_is_plain_data_and_back() -> None:
    chain = Chain((Tail(tail_weight=0.5, propensity=Propensity(a=0.6, b=2.6)), Display(power=3)))
    plain = json.loads(json.dumps(chain.plain()))
    assert [step["kind"] for step in plain] == ["tail", "display"]
    assert Chain.of(plain) == chain
    every = chain.with_call(tail_weight=0.2, allow=["l1", "l2"], deny=["l2"])
    assert Chain.of(json.loads(json.dumps(every.plain()))) == every
    with pytest.raises(ConfigError, match="unknown score_step 'tale'; did you mean 'tail'"):
        Chain.of([{"kind": "tale"}])


def test_a_call_leaves_the_chain_as_it_is() -> None:
    before = CHAIN.plain()
    called = CHAIN.with_call(tail_weight=2, deny=["l3"])
    assert CHAIN.plain() == before
    assert [step.kind for step in called.steps] == ["filter", "tail", "display"]
    assert CHAIN.with_call() == CHAIN


def test_each_step_says_how_many_labels_it_needs() -> None:
    asked = []

    def ask(n: int, rows: np.ndarray | None = None) -> TopK:
        asked.append(n)
        return lists(n)

    assert CHAIN.top_k(ask, 4, LABELS).k == 4
    assert CHAIN.with_call(tail_weight=1.0).top_k(ask, 4, LABELS).k == 4
    assert CHAIN.with_call(tail_weight=1.0).top_k(ask, 20, LABELS).k == 20
    assert asked == [4, 100, 200]


def test_weights_meet_the_scores_that_lists_are_ordered_by_and_the_threshold_those_that_are_shown() -> None:
    weighted = CHAIN.with_call(tail_weight=1.0).top_k(lists, 4, LABELS)
    expected = favour_tail(lists(100), 4, power=1.0, train_counts=COUNTS, n_train_texts=1000)
    assert weighted.labels.tolist() == expected.labels.tolist()
    assert (weighted.scores < expected.scores).all() or (weighted.scores != expected.scores).all()
    middle = float(weighted.scores[0, 1])
    cut = Call(4, threshold=middle, tail_weight=1.0).answer(CHAIN, lists, LABELS).lists
    assert cut.labels[0].tolist() == [*weighted.labels[0, :2].tolist(), NO_LABEL, NO_LABEL]
    assert cut.scores[0, :2].tobytes() == weighted.scores[0, :2].tobytes()
    assert np.isneginf(cut.scores[0, 2:]).all()


def test_the_largest_weight_is_that_of_the_rarest_label_that_can_be_scored() -> None:
    longer = np.append(COUNTS, np.zeros(50, np.int64))  # labels without texts
    vocabulary = Vocabulary.of([f"l{number}" for number in range(N_LABELS + 50)])
    whole = ModelLabels(vocabulary, longer, LABELS.scored, 1000)
    chain = Chain((Tail(tail_weight=1.0),))
    assert chain.top_k(lists, 5, whole).scores.tobytes() == chain.top_k(lists, 5, LABELS).scores.tobytes()


def test_filters_come_before_the_weights() -> None:
    chain = CHAIN.with_call(tail_weight=3.0, allow=["l5", "l7", "l299"])
    assert sorted(chain.top_k(lists, 5, LABELS).labels[0].tolist()) == [NO_LABEL, NO_LABEL, 5, 7, 299]


def test_a_threshold_keeps_labels_that_score_exactly_as_much() -> None:
    found = TopK(np.array([[3, 4, 5]], np.int32), np.array([[0.7, 0.5, 0.2]], np.float32))
    kept = Threshold(threshold=0.5).apply(found, 3, LABELS)
    assert kept.labels.tolist() == [[3, 4, NO_LABEL]]
    assert kept.labels.dtype == np.int32
    assert kept.scores.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"tail_weight": -1}, "tail_weight must be greater than or equal to 0, got -1"),
        ({"tail_weight": 11}, "tail_weight must be less than or equal to 10, got 11"),
        ({"threshold": float("nan")}, "threshold must be a finite number"),
        ({"allow": "l1"}, "`allow` must be a list of labels, got the one text 'l1'; put it into a list"),
        ({"deny": [3]}, "deny.0 must be a valid string, got 3"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(call: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Call(**call).answer(CHAIN, lists, LABELS)  # type: ignore[arg-type]
