"""Only some labels: allowed and denied ones, and branches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.filters import Filter, keep_allowed, lists_of_allowed
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK

N_LABELS = 40


def labels_of(vocabulary: Vocabulary, n_scored: int | None = None) -> ModelLabels:
    n = len(vocabulary)
    return ModelLabels(vocabulary, np.ones(n, np.int64), np.arange(n_scored or n, dtype=np.int32), 10)


PLANTS = labels_of(
    Vocabulary.of(
        ["oak", "elm", "rose", "tree", "moss"],
        {"oak": "Oak", "elm": "Elm", "rose": "Rose", "tree": "Trees", "wood": "Woody plants", "x/*": "odd"},
        parents={"oak": ["tree"], "elm": ["tree"], "tree": ["wood"], "rose": ["wood", "garden"], "moss": []},
    )
)


def passing(**options: list[str]) -> list[str]:
    allowed = Filter.of(options).allowed(PLANTS)
    return [label for label, passes in zip(PLANTS.vocabulary.ids, allowed, strict=True) if passes]


def test_labels_are_given_by_id_or_by_name() -> None:
    assert passing(allow=["oak", "Rose"]) == ["oak", "rose"]
    assert passing(deny=["oak", "Rose"]) == ["elm", "tree", "moss"]
    assert passing(allow=["oak", "Rose", "moss"], deny=["Rose"]) == ["oak", "moss"]


def test_a_branch_is_a_label_and_all_below_it() -> None:
    assert passing(allow=["tree/*"]) == ["oak", "elm", "tree"]
    assert passing(allow=["Trees/*"]) == ["oak", "elm", "tree"]
    assert passing(allow=["wood/*"]) == ["oak", "elm", "rose", "tree"]  # a parent that is no label
    assert passing(allow=["Woody plants/*"], deny=["tree/*"]) == ["rose"]
    assert passing(deny=["garden/*", "moss"]) == ["oak", "elm", "tree"]
    assert passing(allow=["moss/*"]) == ["moss"]


def test_a_hierarchy_that_runs_in_circles_ends() -> None:
    circle = labels_of(Vocabulary.of(["a", "b", "c"], parents={"a": ["b"], "b": ["a"]}))
    assert Filter(allow=("a/*",)).allowed(circle).tolist() == [True, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"allow": ["oka"]}, "`allow`: the model has no label 'oka'; did you mean 'oak'"),
        ({"deny": ["Rosse"]}, "`deny`: the model has no label 'Rosse'; did you mean 'Rose'"),
        ({"allow": ["Tree/*"]}, r"`allow`: the model has no label 'Tree'; did you mean 'Trees'"),
        ({"allow": ["wood"]}, r"'wood' is not a label but has labels below it; write 'wood/\*'"),
        ({"allow": []}, "`allow` must leave one of the 5 labels that the model can score, got none"),
        ({"deny": ["wood/*", "moss"]}, "`deny` must leave one of the 5 labels"),
    ],
)
def test_what_is_not_known_or_leaves_nothing_is_refused(options: dict[str, list[str]], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        passing(**options)


def test_labels_that_cannot_be_scored_alone_are_refused() -> None:
    labels = labels_of(PLANTS.vocabulary, n_scored=3)
    assert Filter(allow=("oak", "moss")).allowed(labels).sum() == 2
    with pytest.raises(ConfigError, match=r"one of the 3 labels .* labels without training texts are not among them"):
        Filter(allow=("moss", "tree")).allowed(labels)


def test_of_a_large_vocabulary_names_with_the_same_first_letter_are_proposed() -> None:
    names = {str(number): f"{'ab'[number % 2]}-name-{number}" for number in range(25_000)}
    labels = labels_of(Vocabulary.of(list(names), names))
    with pytest.raises(ConfigError, match="did you mean 'a-name-1222'"):
        Filter(allow=("a-nmae-1222",)).allowed(labels)


class Asked:
    """A method over `N_LABELS` labels that knows only some of them for each text, and notes what it is asked."""

    def __init__(self, seed: int, n_texts: int = 9) -> None:
        rng = np.random.default_rng(seed)
        self.scores = rng.permuted(np.tile(np.linspace(0.9, 0.1, N_LABELS), (n_texts, 1)), axis=1)
        self.known = rng.random((n_texts, N_LABELS)) < rng.choice([0.2, 1.0], (n_texts, 1))
        self.asked: list[tuple[int, int]] = []

    def __call__(self, n: int, rows: np.ndarray | None = None) -> TopK:
        rows = np.arange(len(self.scores)) if rows is None else rows
        self.asked.append((n, len(rows)))
        labels = np.where(self.known[rows], np.arange(N_LABELS), NO_LABEL)
        return top_k(labels, np.where(self.known[rows], self.scores[rows], -np.inf), n)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([0.05, 0.3, 0.9]), st.integers(1, 300))
def test_lists_are_as_long_as_they_can_be(seed: int, k: int, share: float, scores_at_once: int) -> None:
    rng = np.random.default_rng(seed)
    allowed = rng.random(N_LABELS) < share
    allowed[int(rng.integers(N_LABELS))] = True
    ask, scored = Asked(seed), np.arange(N_LABELS, dtype=np.int32)
    found = lists_of_allowed(ask, k, allowed, scored, scores_at_once=scores_at_once)
    every = keep_allowed(ask(N_LABELS), allowed, k)
    np.testing.assert_array_equal(found.labels, every.labels)
    np.testing.assert_array_equal(found.scores, every.scores)


def test_a_longer_list_is_asked_for_only_where_it_is_needed() -> None:
    n = 5000
    scores = np.tile(np.linspace(1, 0, n, dtype=np.float32), (3, 1))
    order = np.stack([np.arange(n), np.arange(n)[::-1], np.roll(np.arange(n), 200)]).astype(np.int32)
    asked = []

    def ask(length: int, rows: np.ndarray | None = None) -> TopK:
        rows = np.arange(3) if rows is None else rows
        asked.append((length, rows.tolist()))
        return TopK(order[rows, :length], scores[rows, :length])

    allowed = np.arange(n) < 2
    found = lists_of_allowed(ask, 2, allowed, np.arange(n, dtype=np.int32))
    assert sorted(found.labels[1].tolist()) == [0, 1]
    assert asked == [(108, [0, 1, 2]), (864, [1, 2]), (5000, [1])]
    assert lists_of_allowed(ask, 3, np.ones(n, bool), np.arange(n, dtype=np.int32)).labels.shape == (3, 3)
    assert asked[-1] == (3, [0, 1, 2])  # nothing is left out, nothing more is asked for


def test_an_empty_batch_stays_empty() -> None:
    ask = Asked(0, n_texts=0)
    assert lists_of_allowed(ask, 4, np.arange(N_LABELS) < 3, np.arange(N_LABELS, dtype=np.int32)).labels.shape == (0, 4)
