"""The splits of `reference.clustering`, compiled."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.native.lanes import LANES, dot_lanes
from longtail.kernels.native.order import kth_smallest


@kernel
def split_in_two(
    indptr, indices, values, n_features, n_left, first, second,
    spherical, stop, tolerance, max_passes, side, objectives,
):  # fmt: skip
    """Do what `reference.clustering.split_in_two` does."""
    n = len(indptr) - 1
    left, right = np.zeros(n_features, np.float32), np.zeros(n_features, np.float32)
    left_sum, right_sum = np.zeros(n_features, np.float32), np.zeros(n_features, np.float32)
    scores = np.empty(n, np.float32)
    moved_scores = np.empty(n, np.float32)
    squares = 0.0
    for p in range(indptr[0], indptr[n]):
        squares += values[p] * values[p]
    for p in range(indptr[first], indptr[first + 1]):
        left[indices[p]] += values[p]
    for p in range(indptr[second], indptr[second + 1]):
        right[indices[p]] += values[p]
    gained, energy = -np.inf, 0.0
    for passed in range(max_passes):
        for f in range(n_features):
            left_sum[f] = right[f] - left[f]
        new_energy = 0.0
        for i in range(n):
            score = np.float32(0)
            for p in range(indptr[i], indptr[i + 1]):
                score += values[p] * left_sum[indices[p]]
            scores[i] = score
            new_energy += score * score
        for i in range(n):
            moved_scores[i] = scores[i]
        limit = kth_smallest(moved_scores, n_left - 1) if n_left > 0 else np.float32(-np.inf)
        room = n_left  # for those at the limit, the first ones first
        for i in range(n):
            room -= scores[i] < limit
        same = True
        for i in range(n):
            goes_left = scores[i] < limit
            if scores[i] == limit and room > 0:
                goes_left = True
                room -= 1
            new_side = 0 if goes_left else 1
            same &= side[i] == new_side
            side[i] = new_side
        left_sum[:] = 0
        right_sum[:] = 0
        for i in range(n):
            target = right_sum if side[i] else left_sum
            for p in range(indptr[i], indptr[i + 1]):
                target[indices[p]] += values[p]
        objective = _advance(left, left_sum, n_left, spherical) + _advance(right, right_sum, n - n_left, spherical)
        objective = objective / n if spherical else (objective - squares) / n
        objectives[passed] = objective
        if stop == 0:
            done = objective - gained < tolerance
        elif stop == 1:
            done = passed > 0 and abs(new_energy - energy) < tolerance * energy
        else:
            done = passed > 0 and same
        if done:
            return passed + 1
        gained, energy = objective, new_energy
    return max_passes


@kernel
def _advance(centre, total, size, spherical):
    """Move a centre to its members, whose sum is `total`; returns its share of the objective at the old place."""
    inside, length, square = 0.0, 0.0, 0.0
    for f in range(len(centre)):
        inside += total[f] * centre[f]
        length += total[f] * total[f]
        square += centre[f] * centre[f]
    scale = np.sqrt(length) if spherical else np.float64(size)
    scale = np.float32(1 / scale) if scale > 0 else np.float32(0)
    for f in range(len(centre)):
        centre[f] = total[f] * scale
    return inside if spherical else 2 * inside - size * square


@kernel
def assign_to_centres(indptr, indices, values, centres, n_centres, nearest, similarity):
    """Do what `reference.clustering.assign_to_centres` does."""
    out = np.zeros(LANES, np.float32)
    for i in range(len(indptr) - 1):
        best, best_at = np.float32(-np.inf), 0
        for block in range(len(centres)):
            dot_lanes(indices, values, indptr[i], indptr[i + 1], centres[block], out)
            for lane in range(min(LANES, n_centres - block * LANES)):
                if out[lane] > best:
                    best, best_at = out[lane], block * LANES + lane
        nearest[i] = best_at
        similarity[i] = best
