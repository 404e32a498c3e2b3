"""A rising curve through points, by isotonic regression: scores and how often they are right, and the like."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_MOST_KNOTS = 200
_SLOPE = 0.004
"""How much the curve rises at least, from its first point to its last."""


def check_curve(x: tuple[float, ...], *others: tuple[float, ...]) -> None:
    """Raise a ValueError if numbers that were saved are no curve: `x` must rise, `others` be as many, from 0 to 1."""
    if not all(low < high for low, high in pairwise(x)):
        raise ValueError("the points of a curve must rise")
    if any(len(other) != len(x) or not all(0 <= one <= 1 for one in other) for other in others):
        raise ValueError(f"a curve of {len(x)} points must have as many values from 0 to 1")


def rising_curve(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return at most 200 points of the rising curve that is nearest to points with `y` from 0 to 1.

    Between two points of the curve it is straight, and nearly flat within each step of the regression: a steep slope
    there would be wrong where many `x` crowd at one end of it, and none would make different `x` the same. A 0 at the
    top and a 1 at the bottom are added: few points make nothing certain.
    """
    from sklearn.isotonic import IsotonicRegression

    x, y = np.concatenate([x, [x.max(), x.min()]]), np.concatenate([y, [0.0, 1.0]])
    curve = IsotonicRegression(y_min=0, y_max=1).fit(x, y)
    knots, values = curve.X_thresholds_, curve.y_thresholds_
    places = np.unique(np.linspace(0, len(knots) - 1, min(len(knots), _MOST_KNOTS)).round().astype(np.int64))
    values = (1 - _SLOPE) * values[places] + _SLOPE * np.linspace(0, 1, len(places))
    return np.asarray(knots[places]), np.asarray(values)
