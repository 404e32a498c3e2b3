"""Leave words out and look what the score loses: explains every method, and needs nothing of it but its lists.

    words of a text, a label, ask(texts, n) -> TopK  ->  what the label's log odds lose without each word (n_words,)

Texts of many different words are searched in two passes: groups of neighbouring words first, then the words of the
groups that matter most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from longtail.data.inputs import as_table
from longtail.explain.words import TextWords
from longtail.text.readings import TextReadings
from longtail.types import TopK

MOST_TEXTS = 384
"""Texts that are tagged for one explanation."""
LIST_LENGTH = 1000
"""Labels that a method is asked for: a label that is not among them has no score."""
_AT_ONCE = 128
_LEAST, _MOST = 1e-9, 1 - 2.0**-24
_GROUPS_SHARE = 3
"""Of texts with many words, one of so many variants leaves a group out."""

Ask = Callable[[TextReadings, int], TopK]
"""Returns the best n labels of each text, in numbers of the method."""


def log_odds(scores: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the log odds of scores in 0..1, cut where they are certain; votes above 1 as they are."""
    exact = scores.astype(np.float64)
    if exact.max(initial=0) > 1:
        return np.maximum(exact, 0)
    cut = np.clip(exact, _LEAST, _MOST)
    return np.asarray(np.log(cut) - np.log1p(-cut))


def scores_of(lists: TopK, label: int) -> NDArray[np.float32]:
    """Return the score of a label in each list, 0 where it is not in it: (n_texts,)."""
    scores = np.where(lists.labels == label, np.maximum(lists.scores, 0), np.float32(0))
    return np.asarray(scores.max(axis=1, initial=0), np.float32)


def without_each(
    words: TextWords, groups: Sequence[Sequence[int]], label: int, n_labels: int, ask: Ask
) -> NDArray[np.float64]:
    """Return what the label's log odds lose without each group of words, (n_groups,)."""
    variants = [dict(words.fields), *(words.without(group) for group in groups)]
    n = min(n_labels, LIST_LENGTH)
    scores = [
        scores_of(ask(TextReadings(as_table(variants[start : start + _AT_ONCE])), n), label)
        for start in range(0, len(variants), _AT_ONCE)
    ]
    values = log_odds(np.concatenate(scores))
    return np.asarray(values[0] - values[1:])


def occlusion(
    words: TextWords, label: int, n_labels: int, ask: Ask, *, among: Sequence[int] | None = None, most: int = MOST_TEXTS
) -> NDArray[np.float64]:
    """Return what the label's log odds lose without each word, (n_words,).

    Args:
        words: The words of the text.
        label: The label, in numbers of the method; `n_labels` is how many it has.
        n_labels: The number of labels that the method can score.
        ask: Asks the method.
        among: The words that may matter; by default all.
        most: Texts that are tagged at most; a text with more words is searched in two passes.
    """
    chosen = np.arange(len(words)) if among is None else np.array(among, np.int64)
    weights = np.zeros(len(words))
    if len(chosen) > most:
        chosen = _in_weighty_groups(words, chosen, label, n_labels, ask, most)
    if len(chosen):
        weights[chosen] = without_each(words, [[word] for word in chosen.tolist()], label, n_labels, ask)
    return weights


def both_ways(
    words: TextWords, groups: Sequence[Sequence[int]], label: int, n_labels: int, ask: Ask
) -> NDArray[np.float64]:
    """Return the mean of what the label loses without a group and of what the group alone brings back, (n_words,).

    For words that can stand in for each other: where a text has two names of a label, it loses little without one. A
    word has the sum of its groups; words in none have 0.
    """
    every = {word for group in groups for word in group}
    others = [sorted(every.difference(group)) for group in groups]
    losses = without_each(words, [*groups, *others, sorted(every)], label, n_labels, ask)
    n = len(groups)
    weights = np.zeros(len(words))
    for group, loss in zip(groups, (losses[:n] + losses[-1] - losses[n:-1]) / 2, strict=True):
        weights[list(group)] += loss
    return weights


def _in_weighty_groups(
    words: TextWords, chosen: NDArray[np.int64], label: int, n_labels: int, ask: Ask, most: int
) -> NDArray[np.int64]:
    """Return the words of those groups of neighbours whose absence changes the score most."""
    n_groups = most // _GROUPS_SHARE
    groups = np.array_split(chosen, n_groups)
    losses = without_each(words, [group.tolist() for group in groups], label, n_labels, ask)
    kept: list[NDArray[np.int64]] = []
    for number in np.argsort(-losses, kind="stable").tolist():
        if sum(map(len, kept)) + len(groups[number]) > most - n_groups:
            break
        kept.append(groups[number])
    return np.sort(np.concatenate(kept))
