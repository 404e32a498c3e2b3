"""The nearest sparse rows of a pool, by inner product, through an inverted index."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel


@kernel
def nearest_rows(indptr, indices, values, ptr, rows, weights, groups, pool_groups, totals, best, best_products):
    """Do what `reference.nearest.nearest_rows` does."""
    k = best.shape[1]
    for i in range(len(best)):
        for p in range(indptr[i], indptr[i + 1]):
            value, column = values[p], indices[p]
            for q in range(ptr[column], ptr[column + 1]):
                totals[rows[q]] += value * weights[q]
        n_found = 0
        group = groups[i]
        last = np.float32(-np.inf)
        for row in range(len(totals)):
            product = totals[row]
            totals[row] = 0
            # Rows come in order, so one that is only as good as the last of k is not better.
            if (n_found == k and product <= last) or (group >= 0 and pool_groups[row] == group):
                continue
            at = n_found if n_found < k else k - 1
            while at > 0 and best_products[i, at - 1] < product:
                best[i, at], best_products[i, at] = best[i, at - 1], best_products[i, at - 1]
                at -= 1
            best[i, at], best_products[i, at] = row, product
            n_found = min(n_found + 1, k)
            last = best_products[i, n_found - 1]
        for at in range(n_found, k):
            best[i, at], best_products[i, at] = -1, -np.inf
