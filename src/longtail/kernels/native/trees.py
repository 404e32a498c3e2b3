"""The sum of decision trees for each row."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel


@kernel
def sum_of_trees(features, roots, feature, threshold, left, right, value, totals):
    """Do what `reference.trees.sum_of_trees` does."""
    totals[:] = 0
    for tree in range(len(roots)):  # a tree at a time: its nodes stay in the cache
        for row in range(len(features)):
            node = np.int64(roots[tree])
            while feature[node] >= 0:
                goes_left = np.float64(features[row, feature[node]]) <= threshold[node]
                node = left[node] if goes_left else right[node]
            totals[row] += value[node]
