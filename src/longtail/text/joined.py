"""TF-IDF and an embedding of the same texts, side by side in one row: what X-Transformer's ranker reads.

    rows (n, n_columns), vectors (n, d)  ->  Rows (n, n_columns + d)

Both are scaled to unit length, the embedding is multiplied by `weight`, and the row is scaled to unit length again.
An empty row stays empty, so a text without known words is its embedding alone. Every row is computed by itself: a text
gets the same features alone as among others.

All d numbers of a text are stored, so the result takes 8 bytes for each of the n · d of them and for each entry of
`rows`: 3.9 GB for a million texts of 100 terms and 384 numbers. Beyond the result and what was handed in, some tens of
megabytes are held.

Weights of an embedding are small and many: a ranker on joined rows wants a `threshold` of at most 0.01
(docs/methods/xbert.md#threshold-with-vectors), and its model grows by d weights per label.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows

_ENTRIES_AT_ONCE = 1 << 20


def with_embeddings(
    rows: Rows, vectors: NDArray[np.float32], weight: float = 1.0, at_once: int = _ENTRIES_AT_ONCE
) -> Rows:
    """Join each row with its vector; `weight` is the length of the vector beside a row of length 1.

    About `at_once` entries are computed at a time.
    """
    n, d = _checked(rows, vectors, weight)
    indptr = rows.indptr + d * np.arange(n + 1)
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    step = max(1, at_once // max(1, int(indptr[-1]) // max(n, 1)))
    for start in range(0, n, step):
        stop = min(start + step, n)
        span = slice(indptr[start], indptr[stop])
        _join(rows.part(start, stop), vectors[start:stop], weight, indices[span], values[span])
    return Rows(indptr, indices, values, rows.n_columns + d)


def _join(
    rows: Rows, vectors: NDArray[Any], weight: float, indices: NDArray[np.int32], values: NDArray[np.float32]
) -> None:
    """Fill the entries of some neighbouring rows."""
    n, d = vectors.shape
    sizes = np.diff(rows.indptr)
    owner = np.repeat(np.arange(n), sizes)  # (n_entries,) row of each entry
    sparse = _factor(np.sqrt(np.bincount(owner, rows.values.astype(np.float64) ** 2, n)), 1.0)
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1)
    if not np.isfinite(lengths).all():
        raise DataError("embeddings must be numbers, got NaN or infinity; look for an encoder that overflows")
    dense = _factor(lengths, weight)
    whole = np.hypot(sparse > 0, weight * (dense > 0))  # length of the joined row
    whole[whole == 0] = 1
    behind = np.repeat(np.tile([False, True], n), np.stack([sizes, np.full(n, d)], axis=1).ravel())
    indices[~behind], values[~behind] = rows.indices, rows.values * (sparse / whole)[owner]
    indices[behind] = np.tile(np.arange(rows.n_columns, rows.n_columns + d), n)
    values[behind] = (vectors * (dense / whole)[:, None]).ravel()


def _factor(lengths: NDArray[np.float64], wanted: float) -> NDArray[np.float64]:
    """Return what each length is multiplied by to become the wanted one; 0 for 0."""
    return np.divide(wanted, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _checked(rows: Rows, vectors: NDArray[Any], weight: float) -> tuple[int, int]:
    """Return the number of texts and the width of embeddings, or raise."""
    if vectors.ndim != 2 or len(vectors) != len(rows):
        raise DataError(f"embeddings must be of shape ({len(rows)}, d), one per text, got {vectors.shape}")
    if not 0 <= weight < np.inf:
        raise ConfigError(f"the weight of embeddings must be a number of at least 0, got {weight}")
    return len(vectors), int(vectors.shape[1])
