"""How likely a fitting label was really assigned: people often forget rare ones.

A label with n_l of N training texts has the propensity p_l = 1 / (1 + C (n_l + b)^-a) with
C = (ln N - 1)(b + 1)^a (Jain, Prabhu, Varma 2016). A right label counts 1 / p_l in PSP@k and PSnDCG@k.

a and b are conventions of the published data sets, and sources disagree on some of them (`published/datasets.toml`);
figures with different constants must never stand in one column.

    training texts of each label (n_labels,)  ->  1 / p (n_labels,)
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveFloat

from longtail.errors import DataError
from longtail.options import Options


class Propensity(Options):
    """The two constants of the propensity model."""

    a: Annotated[PositiveFloat, Field(le=10)] = 0.55
    """How steeply the weight falls with the number of training texts."""
    b: Annotated[PositiveFloat, Field(le=1e9)] = 1.5
    """Added to every label's number of training texts."""

    def __str__(self) -> str:
        return f"a={self.a:g}, b={self.b:g}"


USUAL = Propensity()
"""The constants of data sets without a convention of their own."""


def inverse_propensity(
    train_counts: NDArray[Any], n_train_texts: int, constants: Propensity = USUAL
) -> NDArray[np.float64]:
    """Return 1 / p, at least 1, of each label (n_labels,) from its number of training texts."""
    if n_train_texts < 1:
        raise DataError(f"n_train_texts must be at least 1, got {n_train_texts}")
    # Below three texts ln N - 1 is negative and p would exceed 1.
    scale = max(np.log(n_train_texts) - 1.0, 0.0) * (constants.b + 1.0) ** constants.a
    counts = np.asarray(train_counts, np.float64)
    return np.asarray(1.0 + scale * (counts + constants.b) ** -constants.a)
