"""Small texts with labels that linear classifiers can learn."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from longtail.types import LabelMatrix

N_TEXTS, N_FEATURES, N_LABELS = 60, 40, 24


def problem(seed: int = 0) -> tuple[sp.csr_matrix, LabelMatrix]:
    """Texts whose words tell their labels; text 3 has no words, text 4 no labels."""
    rng = np.random.default_rng(seed)
    rows = [rng.choice(N_LABELS, rng.integers(1, 4), replace=False) for _ in range(N_TEXTS)]
    rows[4] = rows[4][:0]
    dense = rng.random((N_TEXTS, N_FEATURES)) * (rng.random((N_TEXTS, N_FEATURES)) < 0.15)
    for i, row in enumerate(rows):
        dense[i, row] += 1
    dense[3] = 0
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    return sp.csr_matrix((dense / np.maximum(lengths, 1e-9)).astype(np.float32)), LabelMatrix.from_lists(rows, N_LABELS)
