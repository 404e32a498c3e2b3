"""Parts of the training texts, so that a member can be asked about texts that it has not seen.

split (n_texts)  ->  folds (n_texts,) from 0; copies of a text are in the same fold
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.neighbours.hashes import content_hashes, row_hashes


def folds_of(split: Split, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each text, (n_texts,); folds are about equally large, and copies are never in two."""
    contents = _hashes(split)
    distinct, number = np.unique(contents, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(distinct))
    return np.asarray(shuffled[number] % n_folds, np.int64)


def _hashes(split: Split) -> NDArray[Any]:
    if split.has_texts:
        return content_hashes(split.texts, sorted(split.texts.column_names))
    return row_hashes(Rows.of(split.features))
