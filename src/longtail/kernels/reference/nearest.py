"""The nearest sparse rows of a pool, by inner product, through an inverted index.

    pool          column c is in the rows rows[ptr[c] : ptr[c+1]], ascending, with weights[ptr[c] : ptr[c+1]]
    texts         indptr, indices, values, as in a CSR matrix (n, n_columns)
    groups        (n,) rows of the pool with the same number in `pool_groups` are no neighbours; −1 for none
    totals        (n_pool,) zeros, before and after: room for the inner products of one text

Products are added column by column, in the order of a text's columns, so a text finds the same alone as among others.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def nearest_rows(
    indptr: Any, indices: Any, values: Any, ptr: Any, rows: Any, weights: Any, groups: Any, pool_groups: Any,
    totals: Any, best: Any, best_products: Any,
) -> None:  # fmt: skip
    """Fill `best` (n, k) by (−product, row) and `best_products`; short rows end with −1 and −inf."""
    best[:] = -1
    best_products[:] = -np.inf
    for i in range(len(best)):
        products = np.zeros(len(totals), np.float32)
        for p in range(indptr[i], indptr[i + 1]):
            span = slice(ptr[indices[p]], ptr[indices[p] + 1])
            products[rows[span]] += values[p] * weights[span]
        allowed = np.flatnonzero(pool_groups != groups[i]) if groups[i] >= 0 else np.arange(len(totals))
        nearest = allowed[np.argsort(-products[allowed], kind="stable")][: best.shape[1]]
        best[i, : len(nearest)], best_products[i, : len(nearest)] = nearest, products[nearest]
