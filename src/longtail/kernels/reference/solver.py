"""One-vs-rest linear classifiers of up to sixteen labels over the same texts, by dual coordinate descent.

For each lane (label) on its own:

    squared hinge   min ½‖w‖² + Σ c_i max(0, 1 − y_i wᵀx_i)²       (Hsieh et al. 2008, algorithm 1)
    logistic        min ½‖w‖² + Σ c_i log(1 + exp(−y_i wᵀx_i))     (Yu, Huang and Lin 2011, algorithm 5)

`targets[i, lane]` is 0 where the lane is unused, −1 for a negative, and n > 0 for a positive that counts
n times; c_i = text_costs[i] · (cost_negative | n · cost_positive) with the costs of its lane, and a text
without cost is left out. `bias` is the value of a constant feature behind the others (0: none); its weights
are the last row. A pass visits the texts in an order drawn from `seed`. A lane has converged when the
projected gradients of a pass span at most `tolerance`. A text whose projected gradients all lie under a
tenth of that is left as it is.

    weights (n_features + 1, lanes) starts at 0 and holds the answer; returns the number of passes
"""

from __future__ import annotations

from typing import Any

import numpy as np

QUIET = 0.1
"""A text is left alone while its gradients are below this share of the tolerance."""
MULTIPLIER, INCREMENT, MASK = 6364136223846793005, 1442695040888963407, (1 << 64) - 1
NEWTON_STEPS, SHRINK, INNER_TOLERANCE, START = 20, 0.1, 1e-4, 1e-3


def shuffle(order: Any, state: int) -> int:
    """Fisher and Yates with a 64-bit linear congruential generator; returns its next state."""
    for i in range(len(order) - 1, 0, -1):
        state = (state * MULTIPLIER + INCREMENT) & MASK
        j = ((state >> 32) * (i + 1)) >> 32
        order[i], order[j] = order[j], order[i]
    return state


def solve_squared_hinge(
    indptr: Any, indices: Any, values: Any, targets: Any, text_costs: Any, cost_positive: Any, cost_negative: Any,
    bias: float, tolerance: float, max_passes: int, seed: int, weights: Any,
) -> int:  # fmt: skip
    """Minimise the squared hinge loss; return the number of passes."""
    n = len(indptr) - 1
    used, sign, costs = _problem(targets, text_costs, cost_positive, cost_negative)
    diagonal = np.where(used, 0.5 / np.where(used, costs, 1), 0)
    alphas = np.zeros(targets.shape)
    order, state = np.arange(n), int(seed)
    for passed in range(max_passes):
        state = shuffle(order, state)
        high, low = np.zeros(targets.shape[1]), np.zeros(targets.shape[1])
        for i in order:
            at, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
            margin = x @ weights[at] + bias * weights[-1]
            gradient = np.where(used[i], sign[i] * margin - 1 + diagonal[i] * alphas[i], 0)
            projected = np.where(alphas[i] > 0, gradient, np.minimum(gradient, 0))
            high, low = np.maximum(high, projected), np.minimum(low, projected)
            if np.abs(projected).max() <= QUIET * tolerance:
                continue
            moved = np.maximum(alphas[i] - gradient / (x @ x + bias * bias + diagonal[i] + ~used[i]), 0) * used[i]
            step = (moved - alphas[i]) * sign[i]
            alphas[i] = moved
            weights[at] += x[:, None] * step
            weights[-1] += bias * step
        if (high - low).max() <= tolerance:
            return passed + 1
    return max_passes


def solve_logistic(
    indptr: Any, indices: Any, values: Any, targets: Any, text_costs: Any, cost_positive: Any, cost_negative: Any,
    bias: float, tolerance: float, max_passes: int, seed: int, weights: Any,
) -> int:  # fmt: skip
    """Minimise the logistic loss; return the number of passes.

    The gradient of a coordinate is log(α / (c − α)) + y·margin, 0 at the answer.
    """
    n = len(indptr) - 1
    used, sign, costs = _problem(targets, text_costs, cost_positive, cost_negative)
    alphas = START * costs * used
    for i in range(n):
        at, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
        weights[at] += x[:, None] * (alphas[i] * sign[i])
        weights[-1] += bias * alphas[i] * sign[i]
    order, state = np.arange(n), int(seed)
    for passed in range(max_passes):
        state = shuffle(order, state)
        largest = 0.0
        for i in order.tolist():
            at, x = indices[indptr[i] : indptr[i + 1]], values[indptr[i] : indptr[i + 1]]
            margin = x @ weights[at] + bias * weights[-1]
            square = float(x @ x) + bias * bias
            step = np.zeros(targets.shape[1])
            for lane in np.flatnonzero(used[i]):
                alpha, cost = alphas[i, lane], costs[i, lane]
                gradient = np.log(alpha / (cost - alpha)) + sign[i, lane] * margin[lane]
                largest = max(largest, abs(gradient))
                if abs(gradient) > QUIET * tolerance:
                    moved = newton(alpha, cost, square, sign[i, lane] * margin[lane])
                    step[lane] = (moved - alpha) * sign[i, lane]
                    alphas[i, lane] = moved
            weights[at] += x[:, None] * step
            weights[-1] += bias * step
        if largest <= tolerance:
            return passed + 1
    return max_passes


def newton(alpha: float, cost: float, square: float, margin: float) -> float:
    """Return the α that solves one coordinate; works on the smaller of α and c − α, where it is well conditioned."""
    flip = alpha > cost / 2
    start, slope = (cost - alpha, -margin) if flip else (alpha, margin)
    z = start if square * cost / 2 + slope < 0 or start < cost / 2 else SHRINK * start
    z = min(z, cost / 2)
    for _ in range(NEWTON_STEPS):
        first = square * (z - start) + slope + np.log(z / (cost - z))
        if abs(first) < INNER_TOLERANCE:
            break
        ahead = z - first / (square + cost / (z * (cost - z)))
        z = ahead if 0 < ahead < cost else (SHRINK * z if ahead <= 0 else (z + cost) / 2)
    return cost - z if flip else z


def _problem(targets: Any, text_costs: Any, cost_positive: Any, cost_negative: Any) -> tuple[Any, Any, Any]:
    costs = text_costs[:, None] * np.where(targets > 0, targets * cost_positive, cost_negative)
    used = (targets != 0) & (costs > 0)
    return used, np.sign(targets).astype(np.float64), costs
