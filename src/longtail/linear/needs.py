"""What training the linear family will take, counted from a sample of the texts."""

from __future__ import annotations

import numpy as np

from longtail.data.dataset import Split
from longtail.linear.ranker import RankerOptions
from longtail.text.fields import TfidfOptions
from longtail.text.tfidf import Tfidf

_SAMPLE = 1000
_BASE = 220 << 20
"""Python and its libraries."""
_PER_TERM = 5.5
"""Bytes of the model for each term of each label's texts, measured where labels are rare; others share terms."""


def linear_needs(split: Split, features: TfidfOptions, ranker: RankerOptions, n_members: int) -> tuple[int, int]:
    """Bytes of memory and of disk; memory was 0.96 to 1.52 of what four data sets needed (docs/scale.md)."""
    n_texts, n_labels = len(split), split.labels.n_labels
    if split.has_texts:
        sample = np.linspace(0, n_texts - 1, min(n_texts, _SAMPLE)).astype(np.int64)
        terms = Tfidf(features).fit_transform(split.take(sample).texts).nnz / len(sample)
    else:
        terms = split.features.nnz / n_texts  # type: ignore[union-attr]
    rows = 8 * terms * n_texts
    weights = _PER_TERM * terms * len(split.labels.indices)
    recalled = 8 * ranker.n_recalled * n_texts if ranker.negatives == "matcher" else 0
    work = 2 * rows + recalled + 2 * weights + 300 * 8 * min(n_labels, len(split.labels.indices))
    memory = _BASE + split.texts.nbytes + work + (n_members - 1) * weights
    disk = n_members * weights + 60 * terms * n_texts**0.5 * 100
    return int(memory), int(disk + rows)
