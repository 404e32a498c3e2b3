"""The mean direction of the features of a label's texts (PIFA: positive instance feature aggregation)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.kernels.native.rows import sum_rows
from longtail.kernels.rows import Rows, SharedRows
from longtail.labels.vectors.base import (
    LABEL_VECTORS,
    LabelInputs,
    LabelVectorKind,
    VectorOptions,
    Weighting,
    text_weights,
)
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.types import LabelMatrix

_RANDOM_FEATURES = 8


def pifa(
    features: Rows,
    labels: LabelMatrix,
    weighting: Weighting = "equal",
    max_weights: int | None = 300,
    run: Run | None = None,
) -> sp.csr_matrix:
    """Return unit-length sums of the features of each label's texts; a zero row for a label without texts.

    Only the `max_weights` largest numbers of a label are kept; all, if that is None.
    """
    run = run or Run()
    by_label = labels.transpose()
    spec = SumSpec(
        features.share(run.engine, "features"),
        run.engine.share(
            "texts",
            {"ptr": by_label.indptr, "texts": by_label.indices, "weights": text_weights(labels, weighting)},
        ),
        features.n_columns if max_weights is None else max_weights,
    )
    spans = _spans(by_label.indptr, 1 << 14)
    sums = []
    with run.progress.step("label vectors", by_label.n_texts, "labels") as advance:
        for span, summed in zip(spans, run.engine.map(partial(sum_texts, spec), spans), strict=True):
            sums.append(summed)
            advance(span[1] - span[0])
    indptr = np.concatenate([[0], *(lengths for lengths, _, _ in sums)]).cumsum()
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    stop = indptr[-1]
    while sums:  # each one is freed as it is copied, because all together are large
        _, columns, weights = sums.pop()
        start = stop - len(columns)
        indices[start:stop], values[start:stop] = columns, weights
        stop = start
    return sp.csr_matrix((values, indices, indptr), shape=(by_label.n_texts, features.n_columns))


@dataclass(frozen=True)
class SumSpec:
    """Features of texts, and the texts of each label."""

    features: SharedRows
    labels: SharedArrays
    """`ptr` (n_labels + 1,), `texts` of each label, and `weights` (n_texts,): how much a text counts."""
    max_weights: int


def sum_texts(spec: SumSpec, span: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Return the unit-length sums of some neighbouring labels: lengths of rows, columns and values."""
    features, labels = spec.features.open(), spec.labels.open()
    ptr = labels["ptr"][span[0] : span[1] + 1]
    texts = labels["texts"][ptr[0] : ptr[-1]]
    ends = np.concatenate([[0], np.cumsum(features.indptr[texts + 1] - features.indptr[texts])])
    room = np.minimum(np.diff(ends[ptr - ptr[0]]), spec.max_weights).sum()
    indptr = np.zeros(len(ptr), np.int64)
    indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
    sum_rows(
        features.indptr, features.indices, features.values, features.n_columns,
        ptr - ptr[0], texts, labels["weights"][texts], spec.max_weights, indptr, indices, values,
    )  # fmt: skip
    return np.diff(indptr), indices[: indptr[-1]].copy(), values[: indptr[-1]].copy()


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    """Return PIFA vectors; where a label has no texts, or texts without features, its name or a random direction."""
    features, vocabulary = inputs.features, inputs.split.vocabulary
    vectors = pifa(features, inputs.split.labels, options.weighting, options.max_weights, inputs.run)
    empty = np.flatnonzero(np.diff(vectors.indptr) == 0)
    if not len(empty):
        return vectors
    fill = sp.lil_matrix((len(empty), features.n_columns), dtype=np.float32)
    name_features = inputs.sources.name_features
    named = name_features([vocabulary.names[at] for at in empty]) if name_features else None
    if named is not None:
        fill = named.matrix().tolil()
    for at in np.flatnonzero(fill.getnnz(axis=1) == 0):
        generator = np.random.default_rng([inputs.seed, zlib.crc32(vocabulary.ids[empty[at]].encode())])
        columns = generator.choice(features.n_columns, min(_RANDOM_FEATURES, features.n_columns), replace=False)
        fill[at, columns] = 1 / np.sqrt(len(columns))
    place = sp.csr_matrix(
        (np.ones(len(empty), np.float32), (empty, np.arange(len(empty)))), (len(vocabulary), len(empty))
    )
    return (vectors + place @ fill.tocsr()).tocsr()


def _spans(indptr: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Return neighbouring rows in spans of about `size` entries."""
    n = len(indptr) - 1
    cuts = np.searchsorted(indptr, np.arange(size, indptr[-1], size))
    edges = np.unique(np.concatenate([[0], cuts, [n]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]


LABEL_VECTORS.register("pifa")(LabelVectorKind(_make))
