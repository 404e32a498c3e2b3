"""Split label vectors into two clusters of given sizes, or into many of any size.

`split_in_two`: rows `first` and `second` are the first centres. Each pass sorts the rows by
F·(c₁ − c₀), puts the first `n_left` to the left (the best assignment at fixed sizes), and moves the
centres: to the normalised sum of their members (spherical) or to their mean (Euclidean). The objective
(spherical: mean similarity to the own centre; Euclidean: minus the mean squared distance) never falls.

    stop 0  the objective gains less than `tolerance`
    stop 1  Σ s² changes by less than `tolerance` of itself
    stop 2  the left side does not change

    side (n_rows,) int8 and objectives (max_passes,) float64 are filled; returns the number of passes

`assign_to_centres`: best of many centres for each row by similarity (ties to the first one).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from longtail.sparse import sp

BY_GAIN, BY_SCORES, BY_MEMBERS = 0, 1, 2


def split_in_two(
    indptr: Any, indices: Any, values: Any, n_features: int, n_left: int, first: int, second: int,
    spherical: bool, stop: int, tolerance: float, max_passes: int, side: Any, objectives: Any,
) -> int:  # fmt: skip
    """Fill in the side of each row and the objective of each pass; return the number of passes."""
    n = len(indptr) - 1
    rows = sp.csr_matrix((values, indices, indptr), shape=(n, n_features))
    squares = float((values.astype(np.float64) ** 2).sum())
    left, right = rows[[first]].toarray()[0], rows[[second]].toarray()[0]
    gained, energy = -np.inf, 0.0
    for passed in range(max_passes):
        scores = rows @ (right - left)
        before = side.copy()
        side[:] = 1
        side[np.argsort(scores, kind="stable")[:n_left]] = 0
        sums = [rows[side == s].sum(axis=0).A1 for s in (0, 1)]
        if spherical:
            objective = (sums[0] @ left + sums[1] @ right) / n
            centres = [total / (np.linalg.norm(total) or 1) for total in sums]
        else:
            sizes = [n_left, n - n_left]
            objective = -sum(
                size * (c @ c) - 2 * (total @ c)
                for size, total, c in zip(sizes, sums, (left, right), strict=True)
            ) / n - squares / n  # fmt: skip
            centres = [total / max(size, 1) for total, size in zip(sums, sizes, strict=True)]
        objectives[passed] = objective
        new_energy = float(scores @ scores)
        done = (
            objective - gained < tolerance,
            passed > 0 and abs(new_energy - energy) < tolerance * energy,
            passed > 0 and bool((before == side).all()),
        )[stop]
        if done:
            return passed + 1
        gained, energy, (left, right) = objective, new_energy, centres
    return max_passes


def assign_to_centres(
    indptr: Any, indices: Any, values: Any, centres: Any, n_centres: int, nearest: Any, similarity: Any
) -> None:
    """Fill in the nearest centre of each row; `centres` are (n_blocks, n_features, lanes), some lanes unused."""
    n = len(indptr) - 1
    rows = sp.csr_matrix((values, indices, indptr), shape=(n, centres.shape[1]))
    scores = np.concatenate([rows @ block for block in centres], axis=1)[:, :n_centres]
    nearest[:] = scores.argmax(axis=1)
    similarity[:] = scores.max(axis=1)
