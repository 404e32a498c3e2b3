"""Copy some rows of a sparse matrix, with the features they use numbered from 0."""

from __future__ import annotations

from typing import Any

import numpy as np


def gather_rows(
    indptr: Any, indices: Any, values: Any, rows: Any, local_of: Any,
    out_indptr: Any, out_indices: Any, out_values: Any, features: Any,
) -> int:  # fmt: skip
    """Fill the local matrix; returns how many features it has. Features are numbered as they first appear."""
    taken = np.concatenate([np.arange(indptr[row], indptr[row + 1]) for row in rows] or [np.empty(0, np.int64)])
    used, first = np.unique(indices[taken], return_index=True)
    order = np.argsort(first)
    features[: len(used)] = used[order]
    rank = np.empty(len(used), np.int64)
    rank[order] = np.arange(len(used))
    out_indices[: len(taken)] = rank[np.searchsorted(used, indices[taken])]
    out_values[: len(taken)] = values[taken]
    out_indptr[1:] = np.cumsum([indptr[row + 1] - indptr[row] for row in rows])
    return len(used)


def sum_rows(
    indptr: Any, indices: Any, values: Any, n_columns: int, group_ptr: Any, group_rows: Any, group_weights: Any,
    keep: int, out_indptr: Any, out_indices: Any, out_values: Any,
) -> None:  # fmt: skip
    """Weighted sum of the rows of each group, its `keep` largest entries (ties to small columns), at unit length."""
    at = 0
    for g in range(len(group_ptr) - 1):
        total, touched = np.zeros(n_columns, np.float32), np.zeros(n_columns, bool)
        for q in range(group_ptr[g], group_ptr[g + 1]):
            span = slice(indptr[group_rows[q]], indptr[group_rows[q] + 1])
            total[indices[span]] += group_weights[q] * values[span]
            touched[indices[span]] = True
        used = np.flatnonzero(touched)
        used = np.sort(used[np.argsort(-np.abs(total[used]), kind="stable")[:keep]])
        kept = total[used]
        out_indices[at : at + len(used)] = used
        out_values[at : at + len(used)] = kept / (np.linalg.norm(kept) or 1)
        at += len(used)
        out_indptr[g + 1] = at
