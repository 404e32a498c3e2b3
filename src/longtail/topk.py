"""Select the best k of many scored labels, ties broken by label number.

A candidate's score and label become one integer that sorts by (-score, label). A row is then ordered by a plain integer
sort, about five times faster than a sort by two keys, and the order never depends on chance.

    top_k          labels, scores (n_texts, n_candidates)          ->  TopK (n_texts, k)
    top_k_of_rows  sparse rows: indptr (n_texts + 1,), labels and
                   scores (n_scored,), as in a CSR matrix          ->  TopK (n_texts, k)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError, DataError
from longtail.types import NO_LABEL, TopK

_AFTER_ALL_LABELS = np.int32(2**31 - 1)
_LOW_31_BITS = np.int64(2**31 - 1)
CANDIDATES_AT_ONCE = 1 << 22
"""Candidates that are sorted at a time: 32 MiB of sort keys."""


def top_k(labels: NDArray[Any], scores: NDArray[Any], k: int, *, candidates_at_once: int = CANDIDATES_AT_ONCE) -> TopK:
    """Return the best k of each row of distinct candidates. NO_LABEL marks an empty place; short rows end in it."""
    _check(scores, k)
    best = TopK.empty(len(labels), k)
    step = max(1, candidates_at_once // max(labels.shape[1], 1))
    for start in range(0, len(labels), step):
        rows = slice(start, start + step)
        _fill(best, rows, labels[rows], scores[rows])
    return best


def top_k_of_rows(
    indptr: NDArray[Any],
    labels: NDArray[Any],
    scores: NDArray[Any],
    k: int,
    *,
    candidates_at_once: int = CANDIDATES_AT_ONCE,
) -> TopK:
    """Return the best k of each sparse row of distinct labels, in any order. Short rows end in NO_LABEL."""
    _check(scores, k)
    lengths = np.diff(indptr)
    best = TopK.empty(len(lengths), k)
    # Rows of similar length share a block, so that padding it to a rectangle wastes little.
    by_length = np.argsort(lengths, kind="stable")
    end = len(lengths)
    while end > 0 and lengths[by_length[end - 1]] > 0:
        width = int(lengths[by_length[end - 1]])
        start = max(0, end - max(1, candidates_at_once // width))
        rows = by_length[start:end]
        inside = np.arange(width) < lengths[rows, None]  # (n_rows, width)
        places = (np.asarray(indptr)[rows, None] + np.arange(width))[inside]
        block_labels = np.full(inside.shape, NO_LABEL, np.int32)
        block_scores = np.full(inside.shape, -np.inf, np.float32)
        block_labels[inside] = labels[places]
        block_scores[inside] = scores[places]
        _fill(best, rows, block_labels, block_scores)
        end = start
    return best


def _fill(best: TopK, rows: slice | NDArray[Any], labels: NDArray[Any], scores: NDArray[Any]) -> None:
    absent = labels == NO_LABEL
    # Adding 0 turns -0.0 into 0.0, which must tie.
    bits = (np.where(absent, -np.inf, scores).astype(np.float32) + np.float32(0.0)).view(np.int32)
    keys = (~_flip(bits)).astype(np.int64) << 32  # ascending keys are descending scores
    keys |= np.where(absent, _AFTER_ALL_LABELS, labels)
    keys.sort(axis=1)
    keys = keys[:, : best.k]
    first = (keys & _LOW_31_BITS).astype(np.int32)
    first[first == _AFTER_ALL_LABELS] = NO_LABEL
    best.labels[rows, : keys.shape[1]] = first
    best.scores[rows, : keys.shape[1]] = _flip(~(keys >> 32).astype(np.int32)).view(np.float32)


def _flip(bits: NDArray[np.int32]) -> NDArray[np.int32]:
    """Make the bits of a float32 sort as integers, or undo it: negative floats grow in the other direction."""
    return bits ^ ((bits >> 31) & np.int32(2**31 - 1))


def _check(scores: NDArray[Any], k: int) -> None:
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    if np.isnan(scores).any():
        raise DataError("scores must be numbers, got NaN; look for empty or overflowing features")
