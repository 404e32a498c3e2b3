"""The level step of `reference.beam`, compiled: one way for many texts, one for few.

Many texts are taken cluster by cluster: the chunk's features are written into a table once, so that each
non-zero of each text finds its row by one look. For few texts that table would cost more than it saves,
and rows are found by binary search.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.reference.beam import HAIR

_HAIR = np.float32(HAIR)


@kernel
def chunk_margins(
    indptr, indices, values, clusters, offsets, child_ptr, scale, bias,
    row_ptr, row_feature, entry_base, row_entry, entry_child, entry_value,
    n_features, margins,
):  # fmt: skip
    """Do what `reference.beam.chunk_margins` does."""
    n_clusters = len(child_ptr) - 1
    n_texts, width = clusters.shape
    group_ptr = np.zeros(n_clusters + 1, np.int64)
    for i in range(n_texts):
        for j in range(width):
            if clusters[i, j] >= 0:
                group_ptr[clusters[i, j] + 1] += 1
    for cluster in range(n_clusters):
        group_ptr[cluster + 1] += group_ptr[cluster]
    group = np.empty(group_ptr[n_clusters], np.int64)
    place = group_ptr.copy()
    for i in range(n_texts):
        for j in range(width):
            cluster = clusters[i, j]
            if cluster >= 0:
                group[place[cluster]] = i * width + j
                place[cluster] += 1
    row_of = np.full(n_features, -1, np.int32)
    for cluster in range(n_clusters):
        if group_ptr[cluster] == group_ptr[cluster + 1]:
            continue
        first, first_row, base = child_ptr[cluster], row_ptr[cluster], entry_base[cluster]
        ends = first_row + cluster
        n_rows, n_children = row_ptr[cluster + 1] - first_row, child_ptr[cluster + 1] - first
        for r in range(n_rows):
            row_of[row_feature[first_row + r]] = r
        for at in range(group_ptr[cluster], group_ptr[cluster + 1]):
            i, j = group[at] // width, group[at] % width
            out = offsets[i, j]
            for c in range(n_children):
                margins[out + c] = 0
            for p in range(indptr[i], indptr[i + 1]):
                r = row_of[indices[p]]
                if r >= 0:
                    value = values[p]
                    for e in range(base + row_entry[ends + r], base + row_entry[ends + r + 1]):
                        margins[out + entry_child[e]] += value * entry_value[e]
            for c in range(n_children):
                margins[out + c] = margins[out + c] * scale[first + c] + bias[first + c]
        for r in range(n_rows):
            row_of[row_feature[first_row + r]] = -1


@kernel
def chunk_margins_few(
    indptr, indices, values, clusters, offsets, child_ptr, scale, bias,
    row_ptr, row_feature, entry_base, row_entry, entry_child, entry_value,
    n_features, margins,
):  # fmt: skip
    """Do what `reference.beam.chunk_margins` does, for few texts: features are looked up by binary search."""
    for i in range(clusters.shape[0]):
        for j in range(clusters.shape[1]):
            cluster = clusters[i, j]
            if cluster < 0:
                continue
            first, base, out = child_ptr[cluster], entry_base[cluster], offsets[i, j]
            n_children = child_ptr[cluster + 1] - first
            for c in range(n_children):
                margins[out + c] = 0
            low, end = row_ptr[cluster], row_ptr[cluster + 1]
            for p in range(indptr[i], indptr[i + 1]):
                feature = indices[p]
                # Binary search without branches: they would be guessed wrongly half the time.
                n_left = end - low
                while n_left > 1:
                    half = n_left >> 1
                    low += half * np.int64(row_feature[low + half - 1] < feature)
                    n_left -= half
                if low < end and row_feature[low] < feature:
                    low += 1
                if low == end:
                    break
                if row_feature[low] == feature:
                    value = values[p]
                    for e in range(base + row_entry[low + cluster], base + row_entry[low + cluster + 1]):
                        margins[out + entry_child[e]] += value * entry_value[e]
            for c in range(n_children):
                margins[out + c] = margins[out + c] * scale[first + c] + bias[first + c]


@kernel
def keep_best(clusters, scores, offsets, child_ptr, children, margins, weight, power, best, best_scores):
    """Do what `reference.beam.keep_best` does."""
    k = best.shape[1]
    one, zero = np.float32(1), np.float32(0)
    for i in range(clusters.shape[0]):
        kept = 0
        for j in range(clusters.shape[1]):
            cluster = clusters[i, j]
            if cluster < 0:
                continue
            first, at = child_ptr[cluster], offsets[i, j]
            inherited = weight * scores[i, j]
            for c in range(child_ptr[cluster + 1] - first):
                margin = margins[at + c]
                if power == 0:
                    of_margin = -np.log1p(np.exp(-margin)) if margin > 0 else margin - np.log1p(np.exp(margin))
                else:
                    of_margin = one
                    for _ in range(power):
                        of_margin *= max(zero, one - margin)
                    of_margin = -of_margin - _HAIR / (one + np.exp(margin))
                score = inherited + of_margin
                child = children[first + c]
                if kept == k and (
                    score < best_scores[i, k - 1] or (score == best_scores[i, k - 1] and child > best[i, k - 1])
                ):
                    continue
                z = kept if kept < k else k - 1
                while z > 0 and (
                    score > best_scores[i, z - 1] or (score == best_scores[i, z - 1] and child < best[i, z - 1])
                ):
                    best_scores[i, z] = best_scores[i, z - 1]
                    best[i, z] = best[i, z - 1]
                    z -= 1
                best_scores[i, z] = score
                best[i, z] = child
                kept = min(kept + 1, k)
        for z in range(kept, k):
            best[i, z] = -1
            best_scores[i, z] = -np.inf
