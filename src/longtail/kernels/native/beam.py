"""The level step of `reference.beam`, compiled: one way for many texts, one for few.

Many texts are taken cluster by cluster: the chunk's features are written into a table once, so that each
non-zero of each text finds its row by one look. The table is not cleared: rows of later clusters have larger
numbers, and smaller ones are of no meaning. For few texts the table would cost more than it saves, and rows are
found by binary search, for several features at once: each look waits for memory, and these wait together.
"""

from __future__ import annotations

import numpy as np

from longtail.kernels.native.jit import kernel
from longtail.kernels.reference.beam import HAIR

_HAIR = np.float32(HAIR)
_LANES = 16
"""Features that are looked up at once."""
_MOST_ROWS = (1 << 31) - 1


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
    row_of = np.full(n_features, -1, np.int32)  # plus the rows of all clusters before
    n_before = np.int64(0)
    for cluster in range(n_clusters):
        if group_ptr[cluster] == group_ptr[cluster + 1]:
            continue
        first, first_row, base = child_ptr[cluster], row_ptr[cluster], entry_base[cluster]
        ends = first_row + cluster
        n_rows, n_children = row_ptr[cluster + 1] - first_row, child_ptr[cluster + 1] - first
        if n_before + n_rows > _MOST_ROWS:
            row_of[:] = -1
            n_before = np.int64(0)
        for r in range(n_rows):
            row_of[row_feature[first_row + r]] = n_before + r
        for at in range(group_ptr[cluster], group_ptr[cluster + 1]):
            i, j = group[at] // width, group[at] % width
            out = offsets[i, j]
            for c in range(n_children):
                margins[out + c] = 0
            for p in range(indptr[i], indptr[i + 1]):
                r = row_of[indices[p]] - n_before
                if r >= 0:
                    value = values[p]
                    for e in range(base + row_entry[ends + r], base + row_entry[ends + r + 1]):
                        margins[out + entry_child[e]] += value * entry_value[e]
            for c in range(n_children):
                margins[out + c] = margins[out + c] * scale[first + c] + bias[first + c]
        n_before += n_rows


@kernel
def chunk_margins_few(
    indptr, indices, values, clusters, offsets, child_ptr, scale, bias,
    row_ptr, row_feature, entry_base, row_entry, entry_child, entry_value,
    n_features, margins,
):  # fmt: skip
    """Do what `reference.beam.chunk_margins` does, for few texts: features are looked up by binary search."""
    lows = np.empty(_LANES, np.int64)
    for i in range(clusters.shape[0]):
        for j in range(clusters.shape[1]):
            cluster = clusters[i, j]
            if cluster < 0:
                continue
            first, base, out = child_ptr[cluster], entry_base[cluster], offsets[i, j]
            n_children = child_ptr[cluster + 1] - first
            for c in range(n_children):
                margins[out + c] = 0
            first_row = row_ptr[cluster]
            n_rows = row_ptr[cluster + 1] - first_row
            for p in range(indptr[i], indptr[i + 1] if n_rows else indptr[i], _LANES):
                n = min(_LANES, indptr[i + 1] - p)
                for lane in range(n):
                    lows[lane] = first_row
                # Binary search without branches: they would be guessed wrongly half the time.
                n_left = n_rows
                while n_left > 1:
                    half = n_left >> 1
                    for lane in range(n):
                        lows[lane] += half * np.int64(row_feature[lows[lane] + half - 1] < indices[p + lane])
                    n_left -= half
                for lane in range(n):
                    low = lows[lane]
                    if row_feature[low] == indices[p + lane]:
                        value = values[p + lane]
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
