"""The most members that fit into the time, and how many texts their ranker may learn from.

    costs of members, texts, seconds  ->  Schedule: members, folds, expected seconds; None if not even the anchor fits

Each member is trained once for use and once without each fold that the ranker learns from; it is asked about the texts
of these folds. What is kept back lets the anchor be trained once more, should the others take longer than expected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from longtail.choice.candidates import ANCHOR
from longtail.choice.costs import Cost
from longtail.run.resources import ResourceEstimate

_MARGIN = 1.25
"""What is expected is multiplied by this before it is compared with the time that there is."""
_UNION = 0.7
"""Candidates of a text, as a share of the labels in all lists together."""
_RANKERS = 2.5
"""Trainings of a ranker on all candidates: one for use, one on each half, and their features."""
N_FOLDS = 5
"""Parts that the training texts are split into."""


class Schedule(NamedTuple):
    """What is to be trained."""

    members: tuple[str, ...]
    n_ranked_folds: int
    seconds: float
    """Expected; 0 where time was not measured."""


class Sizes(NamedTuple):
    """What the time depends on, beside the members."""

    n_texts: int
    max_ranked_texts: int
    list_length: int
    ranker_s: float = 0.0
    """Seconds per candidate that a ranker learns from."""

    def n_ranked(self, n_ranked_folds: int) -> int:
        """Return from how many texts the ranker learns."""
        return min(self.max_ranked_texts, self.n_texts * n_ranked_folds // N_FOLDS)

    def seconds(self, costs: Sequence[Cost], n_ranked_folds: int) -> float:
        """Return how long a stack of members takes."""
        n_ranked = self.n_ranked(n_ranked_folds)
        n_trainings = 1 + n_ranked_folds * (1 - 1 / N_FOLDS)
        members_s = sum(cost.train_s * n_trainings + cost.ask_s * n_ranked for cost in costs)
        n_candidates = n_ranked * self.list_length * len(costs) * _UNION
        return members_s + _RANKERS * n_candidates * self.ranker_s


def schedule(costs: Mapping[str, Cost], sizes: Sizes, seconds: float | None) -> Schedule | None:
    """Return the schedule with most members that fits into `seconds`, and among these the one with most texts to rank.

    `costs` begin with the anchor. Without `seconds`, everything fits. None if not even the anchor does.
    """
    anchor_s = costs[ANCHOR].train_s
    if seconds is not None and anchor_s > seconds:
        return None
    enough = -(-sizes.max_ranked_texts * N_FOLDS // max(sizes.n_texts, 1))
    for members in _sets([name for name in costs if name != ANCHOR]):
        for n_ranked_folds in range(min(N_FOLDS, enough), 0, -1):
            expected = sizes.seconds([costs[name] for name in (ANCHOR, *members)], n_ranked_folds)
            if seconds is None or _MARGIN * expected + anchor_s <= seconds:
                return Schedule((ANCHOR, *members), n_ranked_folds, expected)
    return Schedule((ANCHOR,), 0, anchor_s)


def together(costs: Sequence[Cost]) -> ResourceEstimate:
    """Return the memory and disk of members that are trained one after the other; all stay until the model is saved."""
    total = costs[0].needs
    for cost in costs[1:]:
        total = total.then(cost.needs)
    return total


def _sets(others: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the sets of other members, large ones first, and among these those that have the first."""
    for size in range(len(others), 0, -1):
        yield from combinations(others, size)
