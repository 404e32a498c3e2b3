"""How likely a fitting label was really assigned: rare ones are often forgotten by those who tag.

A label with n_l of N training texts has the propensity p_l = 1 / (1 + C (n_l + b)^-a) with
C = (ln N - 1)(b + 1)^a (Jain, Prabhu, Varma 2016). A right label counts 1 / p_l in PSP@k and PSnDCG@k.

a and b are conventions of the published data sets. Sources disagree on two of them, so `propensities_of` gives every
setting in use; figures with different constants must never stand in one column.

The same weights can move rare labels up a list: `favour_tail` multiplies scores by (w_l / max w)^t with w = 1 / p, as
PfastreXML ranks again. At t = 1 a score that is a probability becomes what the label is expected to add to PSP@k.

    TopK (n_texts, longer), training texts of each label (n_labels,)  ->  TopK (n_texts, k)
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat

from longtail.errors import ConfigError, DataError
from longtail.options import Options
from longtail.topk import top_k
from longtail.types import NO_LABEL, TopK


class Propensity(Options):
    """The two constants of the propensity model."""

    a: PositiveFloat = 0.55
    """How steeply the weight falls with the number of training texts."""
    b: PositiveFloat = 1.5
    """Added to every label's number of training texts."""

    def __str__(self) -> str:
        return f"a={self.a:g}, b={self.b:g}"


USUAL = Propensity()
"""The constants of all data sets without a convention of their own."""
_WIKIPEDIA = Propensity(a=0.5, b=0.4)
_AMAZON = Propensity(a=0.6, b=2.6)
_SCORES_AT_ONCE = 1 << 22

# Names in lower case without punctuation; the first row that fits counts, its first setting is the usual one.
_SETTINGS: tuple[tuple[str, tuple[Propensity, ...]], ...] = (
    ("wiki10*", (USUAL, _WIKIPEDIA)),  # AttentionXML; DEXML
    ("amazoncat*", (USUAL, _AMAZON)),  # AttentionXML; Parabel, pyxclib, Renee, DEXML
    ("amazon*", (_AMAZON,)),
    ("lfamazon*", (_AMAZON,)),
    ("wiki500k*", (_WIKIPEDIA,)),
    ("wikilshtc*", (_WIKIPEDIA,)),
    ("*wikipedia*500k*", (_WIKIPEDIA,)),
    ("*wikititles*500k*", (_WIKIPEDIA,)),
    ("*", (USUAL,)),
)


def propensities_of(data_set: str) -> tuple[Propensity, ...]:
    """The settings in use for a data set, the usual one first; more than one where sources disagree.

    Of a name such as `attentionxml/wiki-500k`, the last part counts.
    """
    name = re.sub(r"[^a-z0-9]", "", data_set.lower().rpartition("/")[2])
    return next(settings for pattern, settings in _SETTINGS if fnmatchcase(name, pattern))


def inverse_propensity(
    train_counts: NDArray[Any], n_train_texts: int, constants: Propensity = USUAL
) -> NDArray[np.float64]:
    """1 / p of each label (n_labels,) from its number of training texts; at least 1."""
    if n_train_texts < 1:
        raise DataError(f"n_train_texts must be at least 1, got {n_train_texts}")
    # Below three texts ln N - 1 is negative and p would exceed 1.
    scale = max(np.log(n_train_texts) - 1.0, 0.0) * (constants.b + 1.0) ** constants.a
    counts = np.asarray(train_counts, np.float64)
    return np.asarray(1.0 + scale * (counts + constants.b) ** -constants.a)


def longer_list(k: int) -> int:
    """How many labels to look at for the best k of a weighted list.

    A label from behind the list could only climb by outweighing its small score. With 1,000 labels instead of 100,
    all figures were the same to a hundredth of a point (docs/tail.md).
    """
    return max(10 * k, 100)


def favour_tail(
    found: TopK,
    k: int,
    power: float,
    train_counts: NDArray[Any],
    n_train_texts: int,
    constants: Propensity = USUAL,
) -> TopK:
    """The best k of a longer list when the score of label l is multiplied by (w_l / max w)^power; ties by label id."""
    there = found.labels != NO_LABEL
    lowest = float(np.min(found.scores, where=there, initial=0.0))
    if lowest < 0:
        raise ConfigError(
            f"tail_weight must be 0 where scores can be negative, as margins and logs are, got a score of {lowest:g}"
        )
    largest = inverse_propensity(np.min(train_counts), n_train_texts, constants)
    step = max(1, _SCORES_AT_ONCE // max(found.k, 1))
    parts = []
    for start in range(0, max(len(found), 1), step):
        labels, scores, real = (array[start : start + step] for array in (found.labels, found.scores, there))
        weights = inverse_propensity(np.asarray(train_counts)[np.where(real, labels, 0)], n_train_texts, constants)
        weighted = scores * (weights / largest) ** power  # (n_texts, longer)
        parts.append(top_k(labels, np.where(real, weighted, -np.inf), k))
    return TopK.stack(parts)
