"""The steps of `reference.blocks`, compiled."""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel


@kernel
def texts_of_clusters(positive_indptr, positive_indices, recalled, n_clusters, text_ptr, texts):
    """Do what `reference.blocks.texts_of_clusters` does."""
    last_text = np.full(n_clusters, -1, np.int32)
    filling = len(texts) > 0
    place = text_ptr[:-1].copy()
    if not filling:
        text_ptr[:] = 0
    for i in range(len(positive_indptr) - 1):
        n_own = positive_indptr[i + 1] - positive_indptr[i]
        for at in range(n_own + recalled.shape[1]):
            cluster = positive_indices[positive_indptr[i] + at] if at < n_own else recalled[i, at - n_own]
            if cluster < 0 or last_text[cluster] == i:
                continue
            last_text[cluster] = i
            if filling:
                texts[place[cluster]] = i
                place[cluster] += 1
            else:
                text_ptr[cluster + 1] += 1
    if not filling:
        for cluster in range(n_clusters):
            text_ptr[cluster + 1] += text_ptr[cluster]


@kernel
def fill_targets(texts, member_indptr, member_indices, member_counts, position, first, stop, targets):
    """Do what `reference.blocks.fill_targets` does."""
    n_lanes = stop - first
    for row in range(len(texts)):
        for lane in range(targets.shape[1]):
            targets[row, lane] = -1 if lane < n_lanes else 0
        text = texts[row]
        for p in range(member_indptr[text], member_indptr[text + 1]):
            lane = position[member_indices[p]] - first
            if 0 <= lane < n_lanes:
                targets[row, lane] = member_counts[p]


@kernel
def prune(weights, order, n_lanes, threshold, out_row, out_lane, out_weight):
    """Do what `reference.blocks.prune` does."""
    n = 0
    writing = len(out_lane) > 0
    for row in range(len(order)):
        local = order[row]
        for lane in range(n_lanes):
            if abs(weights[local, lane]) >= threshold:
                if writing:
                    out_row[n] = row
                    out_lane[n] = lane
                    out_weight[n] = weights[local, lane]
                n += 1
    return n
