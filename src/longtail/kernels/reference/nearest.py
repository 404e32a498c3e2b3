"""The nearest sparse rows of a pool, by inner product, through an inverted index.

    texts         indptr, indices, values, as in a CSR matrix (n, n_columns); no row is longer than 1
    pool          column c is in the rows rows[ptr[c] : ptr[c+1]], ascending, with weights[ptr[c] : ptr[c+1]]
    the same      row r has the columns columns[row_ptr[r] : row_ptr[r+1]], ascending, with row_values[…]
    bands         (n_columns,) the band of each column: 0 for those that most rows have
    norms         (n_bands, n_pool) norms[b, r]: at least the length of row r in the columns of bands below b
    groups        (n,) rows of the pool with the same number in `pool_groups` are no neighbours; −1 for none
    totals        (n_pool,) zeros, before and after: room for the inner products of one text
    dense         (n_columns,) zeros, before and after: room for one text

Products are added column by column, in the order of a text's columns, so a text finds the same alone as among others.
What is known of bands says which rows need not be looked at; it does not change what is found.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def nearest_rows(
    indptr: Any, indices: Any, values: Any, ptr: Any, rows: Any, weights: Any,
    row_ptr: Any, columns: Any, row_values: Any, bands: Any, norms: Any, groups: Any, pool_groups: Any,
    totals: Any, dense: Any, best: Any, best_products: Any,
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


def band_norms(row_ptr: Any, columns: Any, row_values: Any, bands: Any, norms: Any) -> None:
    """Fill `norms` (n_bands, n_pool), rounded up."""
    for row in range(norms.shape[1]):
        span = slice(row_ptr[row], row_ptr[row + 1])
        squares = np.bincount(bands[columns[span]], row_values[span].astype(np.float64) ** 2, len(norms))
        norms[:, row] = np.sqrt(np.cumsum([0, *squares[:-1]])) * ROUND_UP


ROUND_UP = 1.000001
"""More than single precision loses of a length."""
