"""From label clusters to the solver's sixteen lanes and back.

`texts_of_clusters`: the texts that train each cluster: those with a positive in it, and those that recall
brought to it (`recalled` (n_texts, b), −1 for none). A text is listed once per cluster, texts in order.

`fill_targets`: targets (n_texts, 16) of sixteen neighbouring children of one parent, from the children of
each text (`member_*`, with how often each counts); `position` says where a child stands in its level.

`prune`: entries (feature, lane, weight) with |weight| ≥ `threshold`, ordered by feature, then lane;
`order` lists the local features by their number in the whole matrix. Returns how many were written;
with an empty `out_lane` it only counts.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def texts_of_clusters(
    positive_indptr: Any, positive_indices: Any, recalled: Any, n_clusters: int, text_ptr: Any, texts: Any
) -> None:
    """Fill text_ptr (n_clusters + 1,) and, when it is not empty, texts."""
    members: list[list[int]] = [[] for _ in range(n_clusters)]
    for i in range(len(positive_indptr) - 1):
        positive = set(positive_indices[positive_indptr[i] : positive_indptr[i + 1]].tolist())
        for cluster in sorted(positive | set(recalled[i][recalled[i] >= 0].tolist())):
            members[cluster].append(i)
    text_ptr[1:] = np.cumsum([len(group) for group in members])
    if len(texts):
        texts[:] = [i for group in members for i in group]


def fill_targets(
    texts: Any, member_indptr: Any, member_indices: Any, member_counts: Any, position: Any, first: int, stop: int,
    targets: Any,
) -> None:  # fmt: skip
    """Fill in the targets of lanes first..stop of the level; unused lanes stay 0."""
    targets[:] = 0
    targets[:, : stop - first] = -1
    for row, text in enumerate(texts):
        for p in range(member_indptr[text], member_indptr[text + 1]):
            lane = position[member_indices[p]] - first
            if 0 <= lane < stop - first:
                targets[row, lane] = member_counts[p]


def prune(
    weights: Any, order: Any, n_lanes: int, threshold: float, out_row: Any, out_lane: Any, out_weight: Any
) -> int:
    """Return the number of entries; `out_row` gets their places in `order`, `out_lane` lanes, `out_weight` weights."""
    kept = weights[order][:, :n_lanes]
    rows, lanes = np.nonzero(np.abs(kept) >= threshold)
    if len(out_lane):
        out_row[:], out_lane[:], out_weight[:] = rows, lanes, kept[rows, lanes]
    return len(rows)
