from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.errors import ConfigError, DataError
from longtail.scores.combine import CombineOptions, combine, combine_growing
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK

Vote = Literal["score", "rank", "round_robin"]
VOTES: tuple[Vote, ...] = ("score", "rank", "round_robin")


def lists(*rows: list[tuple[int, float]]) -> TopK:
    k = max((len(row) for row in rows), default=0)
    full = [row + [(NO_LABEL, -np.inf)] * (k - len(row)) for row in rows]
    return TopK(
        np.array([[label for label, _ in row] for row in full], np.int32).reshape(len(rows), k),
        np.array([[score for _, score in row] for row in full], np.float32).reshape(len(rows), k),
    )


def labels_of(found: TopK) -> list[list[int]]:
    return [[int(label) for label in row if label != NO_LABEL] for row in found.labels]


@st.composite
def members(draw: st.DrawFn, n_members: int) -> list[TopK]:
    """Members of different k over the same texts, with ties, short rows and scores of 0."""
    n_texts = draw(st.integers(0, 4))
    # Down to 2^-20, so that sums in float64 are exact and the order of the members cannot matter at all.
    scores = st.just(0.0) | st.sampled_from([0.25, 0.5]) | st.floats(2.0**-20, 1.0, width=32)
    found = []
    for _ in range(n_members):
        width = draw(st.integers(1, 6))
        rows = draw(st.lists(st.dictionaries(st.integers(0, 7), scores, max_size=width), min_size=n_texts,
                             max_size=n_texts))  # fmt: skip
        labels, values = np.full((n_texts, width), NO_LABEL, np.int32), np.zeros((n_texts, width))
        for i, row in enumerate(rows):
            labels[i, : len(row)], values[i, : len(row)] = list(row), list(row.values())
        found.append(top_k(labels, values, width))
    return found


def slow_combine(lists_: list[TopK], k: int, vote: Vote, weights: list[float]) -> list[list[tuple[int, float]]]:
    longest = max(member.k for member in lists_)
    merged = []
    for text in range(len(lists_[0])):
        votes: dict[int, float] = {}
        for place in range(longest):
            for turn, (member, weight) in enumerate(zip(lists_, weights, strict=True)):
                if place >= member.k or (label := int(member.labels[text, place])) == NO_LABEL:
                    continue
                if vote == "round_robin":
                    votes.setdefault(label, (longest - place) * len(lists_) - turn)
                else:
                    given_ = float(member.scores[text, place]) if vote == "score" else longest - place
                    votes[label] = votes.get(label, 0.0) + weight * given_ / sum(weights)
        ranked = sorted(((label, float(np.float32(v))) for label, v in votes.items()), key=lambda p: (-p[1], p[0]))
        merged.append(ranked[:k])
    return merged


@pytest.mark.parametrize("vote", VOTES)
@given(found=members(1))
def test_one_member_keeps_its_order(vote: Vote, found: list[TopK]) -> None:
    merged = combine(found, found[0].k, CombineOptions(vote=vote))
    np.testing.assert_array_equal(merged.labels, found[0].labels)
    if vote == "score":
        np.testing.assert_array_equal(merged.scores, found[0].scores)


@pytest.mark.parametrize("vote", VOTES)
@given(found=members(1))
def test_identical_members_keep_their_order(vote: Vote, found: list[TopK]) -> None:
    for n_members in (2, 3):
        merged = combine(found * n_members, found[0].k, CombineOptions(vote=vote))
        np.testing.assert_array_equal(merged.labels, found[0].labels)
        if vote == "score":
            np.testing.assert_array_equal(merged.scores, found[0].scores)


@pytest.mark.parametrize("vote", ["score", "rank"])
@given(found=members(3), order=st.permutations(range(3)))
def test_the_order_of_the_members_does_not_change_a_mean(vote: Vote, found: list[TopK], order: list[int]) -> None:
    options = CombineOptions(vote=vote)
    one, other = combine(found, 5, options), combine([found[i] for i in order], 5, options)
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_array_equal(one.scores, other.scores)


@pytest.mark.parametrize("vote", VOTES)
@given(found=members(3), k=st.integers(1, 9), weighted=st.booleans())
def test_votes_are_counted_as_plain_python_counts_them(vote: Vote, found: list[TopK], k: int, weighted: bool) -> None:
    # Powers of two keep the weighted sums exact, so that ties fall alike.
    weights = [1.0, 2.0, 1.0] if weighted and vote != "round_robin" else [1.0, 1.0, 1.0]
    options = CombineOptions(vote=vote, weights=tuple(weights) if weighted and vote != "round_robin" else None)
    merged = combine(found, k, options)
    assert merged.labels.shape == (len(found[0]), k)
    for text, expected in enumerate(slow_combine(found, k, vote, weights)):
        got = {int(a): float(b) for a, b in zip(merged.labels[text], merged.scores[text], strict=True) if a >= 0}
        best = dict(expected)
        assert len(got) == len(best)
        assert list(got.values()) == pytest.approx(list(best.values()), rel=1e-6)
        for label in set(got) & set(best):
            assert got[label] == pytest.approx(best[label], rel=1e-6)


def test_scores_are_averaged_and_an_absent_label_counts_as_zero() -> None:
    one, two = lists([(1, 0.9), (2, 0.8)]), lists([(2, 0.5), (3, 0.4)])
    merged = combine([one, two], 3)
    assert labels_of(merged) == [[2, 1, 3]]
    np.testing.assert_allclose(merged.scores, [[0.65, 0.45, 0.2]], rtol=1e-6)


def test_ranks_are_counted_down_from_the_longest_list() -> None:
    long, short = lists([(1, 9.0), (2, -3.0), (3, -7.0)]), lists([(3, 1.0)])
    merged = combine([long, short], 3, CombineOptions(vote="rank"))
    assert labels_of(merged) == [[3, 1, 2]]
    np.testing.assert_array_equal(merged.scores, [[2.0, 1.5, 1.0]])  # (1 + 3) / 2, 3 / 2, 2 / 2


def test_round_robin_takes_the_members_in_turn() -> None:
    one, two = lists([(5, 0.9), (6, 0.8), (7, 0.7)]), lists([(1, 0.1), (5, 0.1), (2, 0.1)])
    assert labels_of(combine([one, two], 5, CombineOptions(vote="round_robin"))) == [[5, 1, 6, 7, 2]]
    assert labels_of(combine([two, one], 5, CombineOptions(vote="round_robin"))) == [[1, 5, 6, 2, 7]]


def test_equal_votes_are_ordered_by_label() -> None:
    assert labels_of(combine([lists([(9, 0.5)]), lists([(4, 0.5)])], 2)) == [[4, 9]]


def test_a_heavier_member_wins() -> None:
    one, two = lists([(1, 0.6), (2, 0.5)]), lists([(2, 0.6), (1, 0.4)])
    assert labels_of(combine([one, two], 1)) == [[2]]
    assert labels_of(combine([one, two], 1, CombineOptions(weights=(3.0, 1.0)))) == [[1]]


def test_blocks_of_texts_do_not_change_the_result() -> None:
    rng = np.random.default_rng(0)
    found = [
        top_k(np.argsort(rng.random((50, 30)), axis=1)[:, :8].astype(np.int32), rng.random((50, 8)), 8)
        for _ in range(3)
    ]
    whole = combine(found, 6)
    blocks = combine(found, 6, votes_at_once=100)
    np.testing.assert_array_equal(blocks.labels, whole.labels)
    np.testing.assert_array_equal(blocks.scores, whole.scores)


def test_members_must_have_tagged_the_same_texts() -> None:
    with pytest.raises(DataError, match=r"same texts, got \[1, 2\] texts"):
        combine([lists([(1, 1.0)]), lists([(1, 1.0)], [(1, 1.0)])], 1)


def test_an_ensemble_needs_a_member() -> None:
    with pytest.raises(ConfigError, match="at least one member"):
        combine([], 1)


def test_weights_must_be_one_per_member() -> None:
    with pytest.raises(ConfigError, match="one number per member, got 2 for 1 members"):
        combine([lists([(1, 1.0)])], 1, CombineOptions(weights=(1.0, 2.0)))


def test_negative_scores_cannot_be_averaged_with_absent_ones() -> None:
    with pytest.raises(DataError, match=r"at least 0.* got -2; use vote 'rank'"):
        combine([lists([(1, -2.0)]), lists([(2, -1.0)])], 1)


def test_weights_and_round_robin_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="put the best member first"):
        CombineOptions.of({"vote": "round_robin", "weights": [1.0, 2.0]})


@pytest.mark.parametrize("vote", ["score", "rank", "round_robin"])
def test_a_longer_list_begins_with_every_shorter_one(vote: str) -> None:
    rng = np.random.default_rng(0)
    members = []
    for _ in range(3):
        scores = -np.sort(-rng.random((5, 40)).astype(np.float32), axis=1)
        labels = np.array([rng.permutation(40) for _ in range(5)], np.int32)
        labels[0, 30:], scores[0, 30:] = -1, -np.inf
        members.append(TopK(labels, scores))
    options = CombineOptions.of({"vote": vote})
    longest = combine_growing(members, 40, 4, options)
    assert [len(set(row) - {-1}) for row in longest.labels.tolist()][1:] == [40] * 4
    assert (np.diff(longest.scores[1:]) <= 0).all()
    for k in (1, 4, 5, 8, 12, 13, 25, 39):
        shorter = combine_growing(members, k, 4, options)
        assert np.array_equal(shorter.labels, longest.labels[:, :k])
        assert np.array_equal(shorter.scores, longest.scores[:, :k])
