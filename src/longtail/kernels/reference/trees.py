"""The sum of decision trees for each row.

features               (n, n_features) float32
roots                  (n_trees,) the first node of each tree
feature, threshold     (n_nodes,) a row with features[feature] <= threshold goes left; −1: the node is a leaf
left, right            (n_nodes,) child nodes
value                  (n_nodes,) what a leaf adds
totals                 (n,) float64, the sums
"""

from __future__ import annotations

from typing import Any

import numpy as np


def sum_of_trees(
    features: Any, roots: Any, feature: Any, threshold: Any, left: Any, right: Any, value: Any, totals: Any
) -> None:
    """Fill `totals` with the sum of the values of the leaves that each row reaches, in the order of the trees."""
    for row in range(len(features)):
        total = np.float64(0)
        for root in roots:
            node = root
            while feature[node] >= 0:
                goes_left = np.float64(features[row, feature[node]]) <= threshold[node]
                node = left[node] if goes_left else right[node]
            total += value[node]
        totals[row] = total
