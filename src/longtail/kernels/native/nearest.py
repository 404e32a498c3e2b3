"""The nearest sparse rows of a pool, without looking at most of what they share with a text.

The columns that many rows have make most of the work and little of the products, for their weights are small. So lists
are added band by band, those of rare columns first. In the bands that are left a row can gain |text|·|row| at most
(Cauchy and Schwarz). The k rows that lead are multiplied out, and once multiplying out all others that can still reach
the last of these takes less time than the next band, no further list is read. Where that never happens, all lists are
added in the order of the columns.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.reference.nearest import ROUND_UP

_AT_ONCE = 64
"""Rows that are passed over together if none of them is wanted."""
_ROW_COST = 2
"""Time of a column when a row is multiplied out, in places of lists."""
_ROUNDING = 2.0**-22
"""More than two sums may differ by that are rounded otherwise, per column, where nothing is longer than 1."""


@kernel
def nearest_rows(
    indptr, indices, values, ptr, rows, weights, row_ptr, columns, row_values, bands, norms, groups, pool_groups,
    totals, dense, best, best_products,
):  # fmt: skip
    """Do what `reference.nearest.nearest_rows` does."""
    k, n_bands, n_pool = best.shape[1], len(norms), len(totals)
    row_cost = _ROW_COST * (len(columns) // max(n_pool, 1)) + 1
    lead, lead_totals = np.empty(k, np.int32), np.empty(k, np.float32)
    n_places, squares = np.empty(n_bands, np.int64), np.empty(n_bands, np.float64)
    for i in range(len(best)):
        first, last, group = indptr[i], indptr[i + 1], groups[i]
        texts, products = best[i], best_products[i]
        n_places[:] = 0
        squares[:] = 0
        for p in range(first, last):
            column = indices[p]
            dense[column] = values[p]
            n_places[bands[column]] += ptr[column + 1] - ptr[column]
            squares[bands[column]] += np.float64(values[p]) ** 2
        n_all = n_places.sum()
        slack = np.float32(_ROUNDING * (last - first + 4))
        pruned, n = False, 0
        _clear(texts, products)
        least = np.float32(-np.inf)
        n_tried = n_bands if k * (row_cost + k) < n_all else 0  # many leaders take long to put in order
        for band in range(n_tried - 1, -1, -1):
            if n_places[band]:
                for p in range(first, last):
                    if bands[indices[p]] == band:
                        _add(values[p], ptr[indices[p]], ptr[indices[p] + 1], rows, weights, totals)
            ahead = n_places[band - 1] if band else n_all
            if band and ahead < n_pool:
                continue  # looking who leads takes longer
            norm = np.float32(np.sqrt(squares[:band].sum()) * ROUND_UP)
            if _n_above(totals, norms[band], norm, least) * row_cost > ahead:
                _clear(lead, lead_totals)
                _keep_best(totals, group, pool_groups, lead, lead_totals)
                for row in lead:
                    if row >= 0 and totals[row] + norm * norms[band, row] >= least:
                        totals[row] = np.nan  # done with
                        product = _product(row, row_ptr, columns, row_values, dense)
                        n = _insert(row, product, n, texts, products)
                least = products[k - 1] - slack
            pruned = _n_above(totals, norms[band], norm, least) * row_cost <= ahead
            if pruned:
                for start in range(0, n_pool, _AT_ONCE):
                    stop = min(start + _AT_ONCE, n_pool)
                    if _n_above(totals[start:stop], norms[band, start:stop], norm, least):
                        for row in range(start, stop):
                            possible = totals[row] + norm * norms[band, row] >= least
                            if possible and (group < 0 or pool_groups[row] != group):
                                product = _product(row, row_ptr, columns, row_values, dense)
                                n = _insert(row, product, n, texts, products)
                                least = products[k - 1] - slack
                break
        if not pruned:
            totals[:] = 0
            for p in range(first, last):
                _add(values[p], ptr[indices[p]], ptr[indices[p] + 1], rows, weights, totals)
            _clear(texts, products)
            _keep_best(totals, group, pool_groups, texts, products)
        totals[:] = 0
        for p in range(first, last):
            dense[indices[p]] = 0


@kernel
def _clear(texts, products):
    texts[:] = -1
    products[:] = -np.inf


@kernel
def _add(value, start, stop, rows, weights, totals):
    # Unsigned, so that no index is looked at whether it counts from the end.
    for q in range(np.uint64(start), np.uint64(stop)):
        totals[np.uint64(rows[q])] += value * weights[q]


@kernel
def _product(row, row_ptr, columns, row_values, dense):
    """Return the product of the dense text and a row, the same to the last bit as that of the lists."""
    total = np.float32(0)
    for p in range(np.uint64(row_ptr[row]), np.uint64(row_ptr[row + 1])):
        total += dense[np.uint64(columns[p])] * row_values[p]
    return total


@kernel
def _n_above(totals, norms, norm, least):
    """How many rows may have a product of at least `least`."""
    n_above = 0
    for row in range(len(totals)):
        n_above += totals[row] + norm * norms[row] >= least
    return n_above


@kernel
def _n_more(totals, least):
    n_more = 0
    for row in range(len(totals)):
        n_more += totals[row] > least
    return n_more


@kernel
def _keep_best(totals, group, pool_groups, texts, products):
    """Insert all rows that are not of the group and not NaN."""
    n, last = 0, len(texts) - 1
    for start in range(0, len(totals), _AT_ONCE):
        stop = min(start + _AT_ONCE, len(totals))
        if _n_more(totals[start:stop], products[last]):
            for row in range(start, stop):
                if totals[row] > products[last] and (group < 0 or pool_groups[row] != group):
                    n = _insert(row, totals[row], n, texts, products)


@kernel
def _insert(row, product, n, texts, products):
    """Insert a row by (−product, row) among the `n` best, if it belongs to them; return how many there are now."""
    k = len(texts)
    at = n
    while at > 0 and (products[at - 1] < product or (products[at - 1] == product and texts[at - 1] > row)):
        at -= 1
        if at + 1 < k:
            texts[at + 1], products[at + 1] = texts[at], products[at]
    if at < k:
        texts[at], products[at] = row, product
    return min(n + 1, k)


@kernel
def band_norms(row_ptr, columns, row_values, bands, norms):
    """Do what `reference.nearest.band_norms` does."""
    n_bands = len(norms)
    squares = np.empty(n_bands, np.float64)
    for row in range(norms.shape[1]):
        squares[:] = 0
        for p in range(row_ptr[row], row_ptr[row + 1]):
            squares[bands[columns[p]]] += np.float64(row_values[p]) ** 2
        below = 0.0
        for band in range(n_bands):
            norms[band, row] = np.sqrt(below) * ROUND_UP
            below += squares[band]
