"""Copy some rows of a sparse matrix, with the features they use numbered from 0."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.native.order import kth_smallest, sort_first


@kernel
def gather_rows(indptr, indices, values, rows, local_of, out_indptr, out_indices, out_values, features):
    """Fill the local matrix; returns how many features it has. `local_of` is -1 everywhere, before and after."""
    n_features = 0
    at = 0
    for i in range(len(rows)):
        row = rows[i]
        for p in range(indptr[row], indptr[row + 1]):
            feature = indices[p]
            local = local_of[feature]
            if local < 0:
                local = np.int32(n_features)
                local_of[feature] = local
                features[n_features] = feature
                n_features += 1
            out_indices[at] = local
            out_values[at] = values[p]
            at += 1
        out_indptr[i + 1] = at
    for i in range(n_features):
        local_of[features[i]] = -1
    return n_features


@kernel
def sum_rows(
    indptr, indices, values, n_columns, group_ptr, group_rows, group_weights, keep, out_indptr, out_indices, out_values
):
    """Do what `reference.rows.sum_rows` does."""
    total = np.zeros(n_columns, np.float32)
    touched = np.empty(n_columns, np.int64)
    seen = np.zeros(n_columns, np.bool_)
    sizes = np.empty(n_columns, np.float32)
    at = out_indptr[0]
    for g in range(len(group_ptr) - 1):
        n = np.int64(0)
        for q in range(group_ptr[g], group_ptr[g + 1]):
            row, weight = group_rows[q], group_weights[q]
            for p in range(indptr[row], indptr[row + 1]):
                column = indices[p]
                if not seen[column]:
                    seen[column] = True
                    touched[n] = column
                    n += 1
                total[column] += weight * values[p]
        sort_first(touched, n)
        limit, room = np.float32(-1), n
        if n > keep:
            for i in range(n):
                sizes[i] = abs(total[touched[i]])
            limit = kth_smallest(sizes[:n], n - keep)
            room = keep
            for i in range(n):
                room -= sizes[i] > limit
        length = 0.0
        start = at
        for i in range(n):
            column = touched[i]
            size = abs(total[column])
            if size > limit or (size == limit and room > 0):
                if size == limit:
                    room -= 1
                out_indices[at] = column
                out_values[at] = total[column]
                length += total[column] * total[column]
                at += 1
            total[column] = 0
            seen[column] = False
        if length > 0:
            scale = np.float32(1 / np.sqrt(length))
            for q in range(start, at):
                out_values[q] *= scale
        out_indptr[g + 1] = at
