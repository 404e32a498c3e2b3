"""One level of beam search: score the children of each text's clusters, keep the best.

The weights of a level lie in chunks, one per parent cluster (docs/methods/linear.md#chunks): `row_feature` holds the
sorted features that any child of the cluster uses, and for each of them a run of (child, value) entries.
A text walks its non-zeros once per cluster, for all children together.

    chunk p     rows row_ptr[p] : row_ptr[p+1]
    row r       feature row_feature[r], entries entry_base[p] + row_entry[r + p : r + p + 2]
    entry e     child entry_child[e] of the cluster, weight entry_value[e] · scale of that child
    child c     of cluster p: position child_ptr[p] + c; scale, bias and name by position

A text's margins with the children of its j-th cluster start at `offsets[i, j]` of `margins`.

`keep_best` adds `weight` times the cluster's log score to the log score of the margin,
−max(0, 1 − m)^power for power > 0 and log σ(m) for power 0, and keeps the best by (−score, child id).
A hair is taken off for small margins, so that saturated scores keep the order of their margins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

HAIR = 1e-5


def chunk_margins(
    indptr: Any, indices: Any, values: Any, clusters: Any, offsets: Any, child_ptr: Any, scale: Any, bias: Any,
    row_ptr: Any, row_feature: Any, entry_base: Any, row_entry: Any, entry_child: Any, entry_value: Any,
    n_features: int, margins: Any,
) -> None:  # fmt: skip
    """Fill in the margins of every text with every child of its clusters; −1 marks an empty place in `clusters`."""
    for i, row in enumerate(clusters):
        text = np.zeros(n_features)
        text[indices[indptr[i] : indptr[i + 1]]] = values[indptr[i] : indptr[i + 1]]
        for j, cluster in enumerate(row):
            if cluster < 0:
                continue
            first, last = child_ptr[cluster], child_ptr[cluster + 1]
            raw = np.zeros(last - first)
            for r in range(row_ptr[cluster], row_ptr[cluster + 1]):
                start, stop = (int(entry_base[cluster]) + int(row_entry[r + cluster + end]) for end in (0, 1))
                np.add.at(raw, entry_child[start:stop], text[row_feature[r]] * entry_value[start:stop])
            margins[offsets[i, j] : offsets[i, j] + last - first] = raw * scale[first:last] + bias[first:last]


def log_score(margin: Any, power: int) -> Any:
    """Return the log score of a margin: always below 0 and strictly increasing."""
    margin = np.asarray(margin, np.float64)
    fine = HAIR / (1 + np.exp(margin))
    if power == 0:
        return -np.logaddexp(0, -margin)
    return -(np.maximum(0, 1 - margin) ** power) - fine


def keep_best(
    clusters: Any, scores: Any, offsets: Any, child_ptr: Any, children: Any, margins: Any,
    weight: float, power: int, best: Any, best_scores: Any,
) -> None:  # fmt: skip
    """Fill `best` (n_texts, k) and `best_scores`; short rows end with −1 and −inf."""
    best[:] = -1
    best_scores[:] = -np.inf
    for i, row in enumerate(clusters):
        candidates: list[tuple[float, int]] = []
        for j, cluster in enumerate(row):
            if cluster < 0:
                continue
            first, last = child_ptr[cluster], child_ptr[cluster + 1]
            of_margin = log_score(margins[offsets[i, j] : offsets[i, j] + last - first], power)
            total = (weight * scores[i, j] + of_margin).astype(np.float32)
            candidates += [(-float(s), int(c)) for s, c in zip(total, children[first:last], strict=True)]
        for at, (score, child) in enumerate(sorted(candidates)[: best.shape[1]]):
            best[i, at], best_scores[i, at] = child, -score
