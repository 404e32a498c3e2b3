"""How likely a fitting label was really assigned: rare ones are often forgotten by those who tag.

A label with n_l of N training texts has the propensity p_l = 1 / (1 + C (n_l + b)^-a) with
C = (ln N - 1)(b + 1)^a (Jain, Prabhu, Varma 2016). A right label counts 1 / p_l in PSP@k and PSnDCG@k.

a and b are conventions of the published data sets. Sources disagree on two of them, so `propensities_of` gives every
setting in use; figures with different constants must never stand in one column.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import PositiveFloat

from longtail.errors import DataError
from longtail.options import Options


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
    """The settings in use for a data set, the usual one first; more than one where sources disagree."""
    name = re.sub(r"[^a-z0-9]", "", data_set.lower())
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
