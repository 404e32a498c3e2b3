"""What a method says about the words of a text, before it becomes an `Explanation`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longtail.explain.explanation import Example, Explanation, HowExplained, LevelMargin, Share
from longtail.explain.words import TextWords


@dataclass(frozen=True, eq=False)
class Attribution:
    """How much each word of a text speaks for a label."""

    method: HowExplained
    weights: NDArray[np.float64]  # (n_words,)
    note: str = ""
    levels: tuple[LevelMargin, ...] = ()
    names: tuple[str, ...] = ()
    members: tuple[Share, ...] = ()
    nearest: tuple[Example, ...] = ()


def mean_of(attributions: Sequence[Attribution], weights: Sequence[float] | None = None) -> Attribution:
    """Return the mean of what members of one kind say, by default all alike; levels are those of all."""
    mean = np.average([one.weights for one in attributions], axis=0, weights=weights)
    notes = dict.fromkeys(one.note for one in attributions if one.note)
    several = len(attributions) > 1
    levels = tuple(
        replace(level, name=f"member {number}, {level.name}") if several else level
        for number, one in enumerate(attributions, 1)
        for level in one.levels
    )
    return Attribution(attributions[0].method, mean, " ".join(notes), levels)


def of_members(
    names: Sequence[str], shares: NDArray[np.float64], explained: Sequence[Explanation], words: TextWords
) -> Attribution:
    """Return what members of different kinds say: the weights of each, the largest being 1, times its share.

    `names`, `shares` (n_members,) and what is `explained` are those of the members; a share of 0 says nothing.
    """
    members = tuple(
        Share(name, share, explanation if share else None)
        for name, share, explanation in zip(names, shares.tolist(), explained, strict=True)
    )
    number = {form: at for at, form in enumerate(words.forms)}
    total = np.zeros(len(words))
    speaking = [(member.share, member.explanation) for member in members if member.explanation is not None]
    for share, explanation in speaking:
        largest = max((abs(word.weight) for word in explanation.words), default=1)
        for word in explanation.words:
            total[number[word.word]] += share * word.weight / largest
    matched = dict.fromkeys(name for _, explanation in speaking for name in explanation.names)
    nearest = next((explanation.nearest for _, explanation in speaking if explanation.nearest), ())
    return Attribution("members", total, names=tuple(matched), members=members, nearest=nearest)
