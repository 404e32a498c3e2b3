"""Estimate what training the linear family will take: memory from a sample of the texts, time by training on one.

Memory and disk are counted. Time is that of training on a sample, in proportion to the work: texts that each cluster
learns from, times the blocks of sixteen classifiers below it, summed over the levels (docs/methods/linear.md#cost). A
classifier of more texts also has more weights, which leave the processor's caches: the time of a text grows with the
texts to the power of `_CACHE`, measured on four data sets.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from longtail.data.dataset import Split
from longtail.kernels.native.lanes import LANES
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.ranker import RankerOptions
from longtail.neighbours.points import WordPointOptions
from longtail.neighbours.text_pool import TextPoolOptions
from longtail.run.resources import ResourceEstimate
from longtail.text.fields import TfidfOptions
from longtail.text.tfidf import Tfidf
from longtail.text.vectors import DEFAULT_WIDTH

_SAMPLE = 1000
_BASE = 220 << 20
"""Python and its libraries."""
_NEURAL = 500 << 20
"""Those of a network, if its text vectors are features too."""
_PER_TERM = 5.5
"""Bytes of the model for each term of each label's texts, measured where labels are rare; others share terms."""
_THRESHOLD, _PRUNED = 0.05, 0.7
"""The threshold of those measurements; bytes fall with a larger one, at least by this power of it: 0.13 left 0.27 to
0.52 of them on four data sets (docs/scale.md)."""
_PER_ASSIGNMENT = 28
"""Bytes of a text's label while clusters are counted: it is sorted as a number of 8 bytes, and copied."""
_MAX_WEIGHTS = VectorOptions().max_weights
_FIRST, _MOST, _WORTH_S = 500, 16_000, 2.0
"""Texts of the first trial; texts of the second one at most, and the seconds that it may take."""
_CACHE = 0.13
_DENSE = 0.75
"""Numbers of a text vector lie side by side in memory: time grows with the number of features to this power."""


def estimate_linear(
    split: Split,
    features: TfidfOptions,
    ranker: RankerOptions,
    n_members: int,
    *,
    tree: TreeOptions | None = None,
    fit: Callable[[Split], object] | None = None,
    n_more: int = 0,
    max_weights: int | None = _MAX_WEIGHTS,
) -> ResourceEstimate:
    """Return the bytes of memory and of disk; `max_weights` are kept of a label's vector, at most.

    On four data sets, the memory was estimated at 0.96 to 1.52 of what was needed (docs/tasks/scale.md).

    With `tree` and `fit`, which trains all members on some texts, also the time. `n_more`: further features of each
    text that `fit` leaves out, such as the numbers of a text vector.
    """
    n_texts, n_labels = len(split), split.labels.n_labels
    plain = terms_per_text(split, features)
    rows, vectors = 8 * plain * n_texts, 8 * n_more * n_texts
    per_term = _PER_TERM
    if ranker.negatives == "matcher":  # the other presets have not been measured with several thresholds
        per_term *= min(1.0, (_THRESHOLD / max(ranker.threshold, _THRESHOLD)) ** _PRUNED)
    weights = per_term * plain * len(split.labels.indices) + 6 * n_more * split.labels.n_seen()
    recalled = 8 * ranker.n_recalled * n_texts if ranker.negatives == "matcher" else 0
    columns = column_bytes(split)
    n_assigned = len(split.labels.indices)
    clusters = 8 * min(
        plain * n_assigned, (math.inf if max_weights is None else max_weights) * min(n_labels, n_assigned)
    )
    memory = {
        "texts": split.texts.nbytes,
        "features": 2 * (rows + vectors) + columns,
        "labels": _PER_ASSIGNMENT * n_assigned,
        "negatives": recalled,
        "weights": (n_members + 1) * weights,
        "programs and clusters": _BASE + (_NEURAL if n_more else 0) + clusters,
    }
    disk = n_members * weights + 60 * plain * n_texts**0.5 * 100
    seconds = None
    if tree is not None and fit is not None:
        seconds = linear_seconds(split, tree, ranker, fit) * (1 + n_more / max(plain, 1.0)) ** _DENSE
    return ResourceEstimate(
        int(sum(memory.values())),
        int(disk + rows),
        "ranker.threshold, ranker.n_recalled, features.blocks.*.max_features or n_seeds",
        seconds=seconds,
        parts=tuple((what, int(size)) for what, size in memory.items()),
    )


def estimate_clustering(split: Split, features: TfidfOptions) -> ResourceEstimate:
    """Return what it takes to cluster labels by the TF-IDF of their texts."""
    rows = 8 * terms_per_text(split, features) * len(split)
    features_bytes = int(3 * rows) + column_bytes(split)
    memory = _BASE + split.texts.nbytes + features_bytes
    return ResourceEstimate(
        int(memory), int(rows), "features.blocks.*.max_features", parts=(("features", features_bytes),)
    )


def pool_bytes(split: Split, options: TextPoolOptions) -> int:
    """Return the bytes of the points of a pool of all texts."""
    points = options.points
    if isinstance(points, WordPointOptions):
        return 4 * (points.vectors.width or DEFAULT_WIDTH) * len(split)
    return int(8 * terms_per_text(split, points.features) * len(split))


def terms_per_text(split: Split, features: TfidfOptions) -> float:
    """Return the mean number of features of a text, by a sample."""
    if not split.has_texts:
        return float(split.features.nnz / len(split))  # type: ignore[union-attr]
    sample = _evenly(len(split), _SAMPLE)
    return float(Tfidf(features).fit_transform(split.take(sample).texts).nnz / len(sample))


def column_bytes(split: Split) -> int:
    """Return the bytes that columns of features that came with the data take, used or not."""
    return 0 if split.has_texts else 8 * int(split.features.shape[1])  # type: ignore[union-attr]


def linear_seconds(split: Split, tree: TreeOptions, ranker: RankerOptions, fit: Callable[[Split], object]) -> float:
    """Return how long training will take, by training on some texts with `fit`."""
    first = split.take(_evenly(len(split), min(_FIRST, len(split))))
    fit(first)  # compiles, or loads, what was not used yet in this process
    first_s = _timed(fit, first)
    n = min(_MOST, len(split), max(4 * _FIRST, int(_FIRST * _WORTH_S / first_s)))
    if n <= len(first):
        return first_s
    second = split.take(_evenly(len(split), n))
    second_s = _timed(fit, second)
    # What both trials have in common does not grow with the texts. At least half of the second one is taken to grow, in
    # case a busy machine slowed the first one down.
    small, large, whole = (_work(part, tree, ranker) for part in (first, second, split))
    growing = max((second_s - first_s) / (1 - small / large), second_s / 2)
    return float(second_s + growing * (whole / large * (len(split) / n) ** _CACHE - 1))


def _timed(fit: Callable[[Split], object], split: Split) -> float:
    start = time.perf_counter()
    fit(split)
    return time.perf_counter() - start


def _work(split: Split, tree: TreeOptions, ranker: RankerOptions) -> float:
    """Return texts times blocks of classifiers, over all levels."""
    n_texts = len(split)
    index = even_index(max(1, split.labels.n_seen()), tree)
    labels_per_text = len(split.labels.indices) / n_texts
    levels, total = index.levels(), 0.0
    for number, level in enumerate(levels):
        blocks = float((-(-np.diff(level.child_ptr) // LANES)).mean())
        last = number == len(levels) - 1
        met = min(level.n_parents, labels_per_text)  # clusters that a text has a label in, at most
        if number == 0 or (last and ranker.negatives == "all"):
            met = level.n_parents
        elif last and ranker.negatives == "matcher":
            met = min(level.n_parents, met + ranker.n_recalled_of(index.n_clusters, split.labels))
        total += n_texts * met * blocks
    return total


def _evenly(n: int, at_most: int) -> np.ndarray[Any, Any]:
    """Return at most so many of `n` rows, spread evenly."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.int64)
