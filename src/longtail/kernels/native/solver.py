"""The solvers of `reference.solver` on sixteen lanes at once, in single precision."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel, loose_kernel
from longtail.kernels.native.lanes import LANES, add_lanes, dot_lanes, fetch_lanes, fetch_row, fetch_span
from longtail.kernels.reference.solver import (
    INCREMENT,
    INNER_TOLERANCE,
    MULTIPLIER,
    NEWTON_STEPS,
    QUIET,
    SHRINK,
    START,
)

_MULTIPLIER, _INCREMENT = np.uint64(MULTIPLIER), np.uint64(INCREMENT)
_HALF_WORD = np.uint64(32)
NEAR = 1 << 17
"""Weights (half a megabyte of them) that stay in the processor's caches; of more, those of the next text are fetched
while this one is treated."""


@kernel
def shuffle(order, state):
    """Do what `reference.solver.shuffle` does."""
    for i in range(len(order) - 1, 0, -1):
        state = state * _MULTIPLIER + _INCREMENT
        j = ((state >> _HALF_WORD) * np.uint64(i + 1)) >> _HALF_WORD
        order[i], order[j] = order[j], order[i]
    return state


@kernel
def _square_norms(indptr, values, bias):
    """Squared length of each row, the constant feature included."""
    norms = np.empty(len(indptr) - 1, np.float32)
    for i in range(len(norms)):
        total = bias * bias
        for p in range(indptr[i], indptr[i + 1]):
            total += values[p] * values[p]
        norms[i] = total
    return norms


@loose_kernel
def solve_squared_hinge(
    indptr, indices, values, targets, text_costs, cost_positive, cost_negative,
    bias, tolerance, max_passes, seed, weights,
):  # fmt: skip
    """Do what `reference.solver.solve_squared_hinge` does."""
    zero, one, half = np.float32(0), np.float32(1), np.float32(0.5)
    n = len(indptr) - 1
    last = len(weights) - 1
    norms = _square_norms(indptr, values, bias)
    alphas = np.zeros((n, LANES), np.float32)
    margin, step, moved = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    high, low = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    order = np.arange(n).astype(np.int32)
    state = np.uint64(seed)
    quiet = np.float32(QUIET) * tolerance
    far = weights.size > NEAR
    for passed in range(max_passes):
        state = shuffle(order, state)
        high[:] = zero
        low[:] = zero
        for at in range(n):
            i = order[at]
            start, stop = indptr[i], indptr[i + 1]
            if far and at + 3 < n:
                later, following = np.int64(order[at + 3]), order[at + 1]
                fetch_span(indices, indptr[later], indptr[later + 1])
                fetch_span(values, indptr[later], indptr[later + 1])
                fetch_row(alphas, later)
                fetch_row(targets, later)
                fetch_lanes(indices, indptr[following], indptr[following + 1], weights)
            dot_lanes(indices, values, start, stop, weights, margin)
            norm = norms[i]
            text_cost = text_costs[i]
            largest = zero
            for lane in range(LANES):
                target = np.float32(targets[i, lane])
                sign = one if target > zero else -one
                cost = text_cost * (target * cost_positive[lane] if target > zero else cost_negative[lane])
                diagonal = half / cost
                alpha = alphas[i, lane]
                gradient = sign * (margin[lane] + bias * weights[last, lane]) - one + diagonal * alpha
                projected = gradient if alpha > zero else min(gradient, zero)
                ahead = max(alpha - gradient / (norm + diagonal), zero)
                if target == zero or cost == zero:
                    projected, ahead = zero, zero
                high[lane] = max(high[lane], projected)
                low[lane] = min(low[lane], projected)
                largest = max(largest, abs(projected))
                moved[lane] = ahead
                step[lane] = (ahead - alpha) * sign
            if largest <= quiet:
                continue
            add_lanes(indices, values, start, stop, step, weights)
            for lane in range(LANES):
                alphas[i, lane] = moved[lane]
                weights[last, lane] += bias * step[lane]
        widest = zero
        for lane in range(LANES):
            widest = max(widest, high[lane] - low[lane])
        if widest <= tolerance:
            return passed + 1
    return max_passes


@kernel
def newton(alpha, cost, square, margin):
    """Do what `reference.solver.newton` does."""
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


@kernel
def solve_logistic(
    indptr, indices, values, targets, text_costs, cost_positive, cost_negative,
    bias, tolerance, max_passes, seed, weights,
):  # fmt: skip
    """Do what `reference.solver.solve_logistic` does, with α in double precision: it may come very close to 0 and c."""
    n = len(indptr) - 1
    last = len(weights) - 1
    norms = _square_norms(indptr, values, bias)
    alphas = np.zeros((n, LANES), np.float64)
    margin, step = np.zeros(LANES, np.float32), np.zeros(LANES, np.float32)
    for i in range(n):
        for lane in range(LANES):
            target = targets[i, lane]
            cost = text_costs[i] * (target * cost_positive[lane] if target > 0 else cost_negative[lane])
            alphas[i, lane] = START * cost if target != 0 else 0.0
            step[lane] = alphas[i, lane] if target > 0 else -alphas[i, lane]
        add_lanes(indices, values, indptr[i], indptr[i + 1], step, weights)
        for lane in range(LANES):
            weights[last, lane] += bias * step[lane]
    order = np.arange(n).astype(np.int32)
    state = np.uint64(seed)
    quiet = QUIET * tolerance
    for passed in range(max_passes):
        state = shuffle(order, state)
        largest = 0.0
        for at in range(n):
            i = order[at]
            start, stop = indptr[i], indptr[i + 1]
            dot_lanes(indices, values, start, stop, weights, margin)
            moves = False
            for lane in range(LANES):
                target = targets[i, lane]
                step[lane] = 0.0
                cost = np.float64(text_costs[i] * (target * cost_positive[lane] if target > 0 else cost_negative[lane]))
                if target == 0 or cost == 0:
                    continue
                signed = np.float64(margin[lane] + bias * weights[last, lane])
                if target < 0:
                    signed = -signed
                alpha = alphas[i, lane]
                gradient = abs(np.log(alpha / (cost - alpha)) + signed)
                largest = max(largest, gradient)
                if gradient > quiet:
                    ahead = newton(alpha, cost, np.float64(norms[i]), signed)
                    step[lane] = ahead - alpha if target > 0 else alpha - ahead
                    alphas[i, lane] = ahead
                    moves = True
            if moves:
                add_lanes(indices, values, start, stop, step, weights)
                for lane in range(LANES):
                    weights[last, lane] += bias * step[lane]
        if largest <= tolerance:
            return passed + 1
    return max_passes
