"""Combine the ranked label lists of several members into one.

Each member hands over a `TopK`. Every list votes for its labels, votes are added per text, and the best `k` labels
win, ties by label number. A label that a member left out gets no vote from it.

    [TopK (n_texts, k_1), TopK (n_texts, k_2), ...]  ->  TopK (n_texts, k)

    score        mean of the members' scores
    rank         mean of (length of the longest list - position), positions from 0
    round_robin  first labels of all members, then all second ones, ...: a label keeps its earliest place
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat, model_validator

from longtail.errors import ConfigError, DataError
from longtail.options import Options
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK


class CombineOptions(Options):
    """How the members' lists are merged."""

    vote: Literal["score", "rank", "round_robin"] = "score"
    """`score` averages the scores, which must share a scale from 0 up; `rank` averages places in the list and
    ignores the scale; `round_robin` takes the members' labels in turn."""
    weights: tuple[PositiveFloat, ...] | None = None
    """One weight per member, for `score` and `rank`. By default all members count the same."""

    @model_validator(mode="after")
    def _weights_need_a_mean(self) -> Self:
        if self.vote == "round_robin" and self.weights is not None:
            raise ValueError("weights must be absent with vote 'round_robin'; put the best member first instead")
        return self


def combine(
    members: Sequence[TopK], k: int, options: CombineOptions | None = None, *, votes_at_once: int = 1 << 22
) -> TopK:
    """Return the best `k` labels of each text over all `members`; `votes_at_once` bounds the memory it takes."""
    options = options or CombineOptions()
    weights = options.weights or (1.0,) * len(members)
    _check(members, weights, options)
    step = max(1, votes_at_once // max(sum(member.k for member in members), 1))
    blocks = [slice(start, start + step) for start in range(0, max(len(members[0]), 1), step)]
    return TopK.stack([_combine_rows([_rows(m, block) for m in members], weights, k, options.vote) for block in blocks])


def combine_growing(members: Sequence[TopK], k: int, length: int, options: CombineOptions | None = None) -> TopK:
    """Return the best `k` labels of each text, which begin with the best of any smaller `k`.

    The first `length` labels of every member are combined, then twice as many, and so on until there are `k`; further
    labels come behind the earlier ones and score at most as much.
    """

    def combined(length: int, k: int) -> TopK:
        return combine([_first(member, length) for member in members], k, options)

    best = combined(length, k if k <= length else length * len(members))
    while length < k:
        length *= 2
        best = _followed_by(best, combined(length, length * len(members)))
    return _first(best, k)


def _followed_by(head: TopK, further: TopK) -> TopK:
    """Return each list of `head` with the labels behind it that only `further` has."""
    lowest = np.min(head.scores, axis=1, where=head.labels != NO_LABEL, initial=np.inf, keepdims=True)
    labels = np.concatenate([head.labels, further.labels], axis=1)  # (n_texts, k_1 + k_2)
    scores = np.concatenate([head.scores, np.minimum(further.scores, lowest)], axis=1)
    by_label = np.argsort(labels, axis=1, kind="stable")
    ordered = np.take_along_axis(labels, by_label, axis=1)
    gone = labels == NO_LABEL
    again = np.take_along_axis(gone, by_label[:, 1:], axis=1) | (ordered[:, 1:] == ordered[:, :-1])
    np.put_along_axis(gone, by_label[:, 1:], again, axis=1)
    kept_first = np.argsort(gone, axis=1, kind="stable")
    empty = np.take_along_axis(gone, kept_first, axis=1)
    labels = np.where(empty, np.int32(NO_LABEL), np.take_along_axis(labels, kept_first, axis=1))
    return TopK(labels, np.where(empty, np.float32(-np.inf), np.take_along_axis(scores, kept_first, axis=1)))


def _first(lists: TopK, k: int) -> TopK:
    return TopK(lists.labels[:, :k], lists.scores[:, :k])


def _combine_rows(members: Sequence[TopK], weights: Sequence[float], k: int, vote: str) -> TopK:
    labels = np.concatenate([member.labels for member in members], axis=1)  # (n_texts, n_votes)
    votes = np.concatenate(_votes(members, weights, vote), axis=1)  # (n_texts, n_votes)
    by_label = np.argsort(labels, axis=1, kind="stable")
    labels = np.take_along_axis(labels, by_label, axis=1)
    votes = np.take_along_axis(votes, by_label, axis=1)
    first = np.ones(labels.shape, bool)  # the first of a label's votes takes them all
    first[:, 1:] = labels[:, 1:] != labels[:, :-1]
    starts = np.flatnonzero(first)
    if vote == "round_robin":
        won = np.maximum.reduceat(votes.ravel(), starts)
    else:
        won = np.add.reduceat(votes.ravel(), starts) / sum(weights)
    totals = np.full(labels.shape, -np.inf)
    totals[first] = won
    return top_k(np.where(first, labels, NO_LABEL), totals, k)


def _votes(members: Sequence[TopK], weights: Sequence[float], vote: str) -> list[NDArray[np.float64]]:
    """Return what each member gives to each place of its list: (n_texts, k_m) per member."""
    if vote == "score":
        # In float64 the sum of a few float32 scores is exact, so the order of the members cannot matter.
        return [weight * member.scores.astype(np.float64) for weight, member in zip(weights, members, strict=True)]
    longest = max(member.k for member in members)
    places = [np.arange(member.k, dtype=np.float64) for member in members]
    if vote == "rank":
        votes = [weight * (longest - place) for weight, place in zip(weights, places, strict=True)]
    else:
        votes = [(longest - place) * len(members) - turn for turn, place in enumerate(places)]
    return [np.broadcast_to(row, member.labels.shape) for row, member in zip(votes, members, strict=True)]


def _rows(member: TopK, block: slice) -> TopK:
    return TopK(member.labels[block], member.scores[block])


def _check(members: Sequence[TopK], weights: Sequence[float], options: CombineOptions) -> None:
    if not members:
        raise ConfigError("an ensemble must have at least one member, got none")
    if len(weights) != len(members):
        raise ConfigError(f"weights must have one number per member, got {len(weights)} for {len(members)} members")
    lengths = [len(member) for member in members]
    if len(set(lengths)) > 1:
        raise DataError(
            f"all members must have tagged the same texts, got {lengths} texts; predict the same file again"
        )
    if options.vote == "score":
        lowest = min(float(np.min(m.scores, where=m.labels != NO_LABEL, initial=0.0)) for m in members)
        if lowest < 0:
            raise DataError(
                f"vote 'score' needs scores of at least 0, because a label left out counts as 0; got {lowest:g}; "
                "use vote 'rank' for margins and log-probabilities"
            )
