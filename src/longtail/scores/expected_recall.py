"""How many of a text's labels a list has, as expected from calibrated scores.

    probabilities of the whole list, of what is kept of it  ->  predicted recall (n_texts,)

A list is expected to have as many of the labels as its probabilities add up to. What share of those of the best twenty
labels is kept tells how many of the text's labels are found: a rising curve that is fitted to unseen texts.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from longtail.options import Options
from longtail.scores.rising import check_curve, rising_curve

N_EXPECTED = 20
"""Labels of each list whose probabilities are added up."""
_N_KEPT = 5
"""How many of them are kept where the curve is fitted."""
_TINY = 1e-9


class ExpectedRecall(Options):
    """Recall by the share of the expected labels that is kept."""

    shares: tuple[float, ...] = (0.0, 1.0)
    """Shares, ascending; between two of them the recall is interpolated."""
    recall: tuple[float, ...] = (0.0, 1.0)
    """The recall at each of `shares`, ascending."""

    @model_validator(mode="after")
    def _is_a_curve(self) -> Self:
        check_curve(self.shares, self.recall)
        return self

    @classmethod
    def fit(cls, probabilities: NDArray[np.float64], right: NDArray[np.bool_], per_text: NDArray[np.int64]) -> Self:
        """Fit to lists of unseen texts.

        Args:
            probabilities: Of the labels of the lists (n_texts, k), falling; −inf in empty places.
            right: Which labels (n_texts, k) are right.
            per_text: The number of labels of each text, (n_texts,).
        """
        some = per_text > 0
        if not some.any():
            return cls()
        hits = right[some, :_N_KEPT].sum(axis=1)
        shares, recall = rising_curve(
            _shares(probabilities[some], probabilities[some, :_N_KEPT]), hits / per_text[some]
        )
        first = int(shares[0] <= 0)  # of an empty list, nothing is found
        return cls(shares=(0.0, *shares[first:].tolist()), recall=(0.0, *recall[first:].tolist()))

    def in_lists(self, whole: NDArray[np.float32], kept: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the predicted recall of each text, (n_texts,).

        Args:
            whole: Probabilities of the best labels of each text, (n_texts, n); −inf in empty places.
            kept: Probabilities of the labels that are suggested, (n_texts, k); −inf in empty places.
        """
        return np.asarray(np.interp(_shares(whole, kept), self.shares, self.recall))


def _shares(whole: NDArray[Any], kept: NDArray[Any]) -> NDArray[np.float64]:
    """Return which share of the labels that are expected in the best places is kept, (n_texts,)."""
    return np.asarray(np.minimum(_expected(kept) / np.maximum(_expected(whole[:, :N_EXPECTED]), _TINY), 1))


def _expected(probabilities: NDArray[Any]) -> NDArray[np.float64]:
    """Return how many labels (n_texts,) are expected to be right."""
    return np.asarray(probabilities.sum(axis=1, where=probabilities > -np.inf), np.float64)
