"""A random direction per label, the same for the same label id; and what stands in where a vector says nothing."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.labels.vectors.base import LABEL_VECTORS, LabelInputs, LabelVectorKind, VectorOptions
from longtail.sparse import sp

_LOST = 1e-6
"""A name whose vector is shorter has nothing in common with the components that were kept."""


def random_vectors(ids: Sequence[str], n_components: int, seed: int = 0) -> sp.csr_matrix:
    """Return a random direction per label (n_labels, n_components), drawn from the label's id and the seed."""
    rows = [np.random.default_rng([seed, zlib.crc32(i.encode())]).standard_normal(n_components) for i in ids]
    dense = np.array(rows, np.float32).reshape(len(ids), n_components)
    return sp.csr_matrix(dense / np.linalg.norm(dense, axis=1, keepdims=True))


def at_unit_length(dense: NDArray[np.float32], vocabulary: Vocabulary, seed: int) -> sp.csr_matrix:
    """Return vectors (n_labels, d) scaled to length one, with random directions in place of zeros.

    `dense` is overwritten.
    """
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    lost = np.flatnonzero(norms < _LOST)
    dense[lost] = random_vectors([vocabulary.ids[at] for at in lost], dense.shape[1], seed).toarray()
    norms[lost] = 1
    dense /= norms
    return sp.csr_matrix(dense)


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    return random_vectors(inputs.split.vocabulary.ids, options.n_components, inputs.seed)


LABEL_VECTORS.register("random")(LabelVectorKind(_make))
