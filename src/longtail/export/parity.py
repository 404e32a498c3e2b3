"""Compare the lists of an exported model with those of the model itself, on a sample of texts.

    lists of the model (n_texts, n), lists of the export (n_texts, n)  ->  Agreement, or an error

The export is right if each of its five best labels has the score that the model gives to that label, and the score that
the model has at that place, both within a tolerance. Labels may therefore change places only where the model's own
scores are as close as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.types import NO_LABEL, TopK

COMPARED = 5
"""Labels of each text that must be the same."""
TOLERANCE = 1e-4
_MADE = 100
"""Texts that are made where none are given."""
_LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Agreement:
    """How near two sets of lists are."""

    n_texts: int
    largest_difference: float
    """Of the scores of the five best labels."""
    n_swapped: int
    """Texts whose five best labels stand in another order, among scores within the tolerance."""


def compare(model: TopK, export: TopK, tolerance: float = TOLERANCE) -> Agreement:
    """Return how near the lists of an export are to those of the model.

    The model's lists should be longer than `COMPARED`, so that labels beyond it can be looked up.
    """
    first, wanted = export.first(COMPARED), model.first(COMPARED)
    both_end = (first.labels == NO_LABEL) & (wanted.labels == NO_LABEL)
    with np.errstate(invalid="ignore"):  # where both lists end, −inf is compared with −inf
        at_place = np.abs(first.scores - wanted.scores)
        of_label = np.abs(first.scores - _scores_of(first.labels, model))
    differences = np.where(both_end, 0.0, np.maximum(at_place, of_label))
    differences = np.nan_to_num(differences, nan=np.inf, posinf=np.inf)
    swapped = (first.labels != wanted.labels).any(1) & (differences <= tolerance).all(1)
    return Agreement(len(model), float(differences.max(initial=0)), int(swapped.sum()))


def check(agreement: Agreement, tolerance: float = TOLERANCE) -> None:
    """Raise if an export is not as near to its model as it must be."""
    if agreement.largest_difference > tolerance:
        raise ConfigError(
            f"scores of an export must be within {tolerance:g} of the model's, but one of {agreement.n_texts:,} texts "
            f"differs by {agreement.largest_difference:.2g}; nothing was written, serve the model with longtail serve"
        )


def same_labels(one: TopK, two: TopK) -> float:
    """Return the share of texts whose five best labels are the same, in whatever order."""
    pairs = zip(np.sort(one.first(COMPARED).labels), np.sort(two.first(COMPARED).labels), strict=True)
    return float(np.mean([np.array_equal(first, second) for first, second in pairs]))


def made_texts(words: Sequence[str], columns: Sequence[str], seed: int = 0) -> pa.Table:
    """Return texts of many lengths, drawn from `words`, in each of the columns: a sample where there is no better one.

    Returns:
        A table of string columns, 100 rows.
    """
    rng = np.random.default_rng(seed)
    lengths = [_LENGTHS[number % len(_LENGTHS)] for number in range(_MADE)]
    drawn = {name: [" ".join(rng.choice(words, length).tolist()) for length in lengths] for name in columns}
    return pa.table({name: pa.array(texts, pa.string()) for name, texts in drawn.items()})


def _scores_of(labels: NDArray[np.int32], lists: TopK) -> NDArray[np.float32]:
    """Return the score that lists (n_texts, n) give to each label (n_texts, k); −inf where they lack it."""
    here = (labels[:, :, None] == lists.labels[:, None, :]) & (labels != NO_LABEL)[:, :, None]  # (n_texts, k, n)
    return np.asarray(np.where(here, lists.scores[:, None, :], -np.inf).max(2, initial=-np.inf), np.float32)
