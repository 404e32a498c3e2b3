"""The mean direction of the dense embeddings of a label's texts (X-Transformer's neural PIFA)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.labels.vectors.base import (
    LABEL_VECTORS,
    LabelInputs,
    LabelVectorKind,
    VectorOptions,
    Weighting,
    text_weights,
)
from longtail.labels.vectors.random import at_unit_length
from longtail.sparse import sp
from longtail.types import LabelMatrix


def embedding_vectors(
    embeddings: NDArray[np.float32],
    labels: LabelMatrix,
    vocabulary: Vocabulary,
    weighting: Weighting = "equal",
    seed: int = 0,
) -> sp.csr_matrix:
    """Return unit-length sums of the unit-length embeddings (n_texts, d) of each label's texts.

    A label without texts gets a random direction.
    """
    embeddings = np.asarray(embeddings, np.float32)
    if embeddings.ndim != 2 or len(embeddings) != labels.n_texts:
        raise DataError(f"embeddings must be of shape ({labels.n_texts}, d), one per text, got {embeddings.shape}")
    lengths = np.sqrt(np.einsum("ij,ij->i", embeddings, embeddings))
    if not np.isfinite(lengths).all():
        raise DataError("embeddings must be finite numbers, got NaN or infinity; check the encoder for overflow")
    weights = text_weights(labels, weighting) / np.where(lengths > 0, lengths, 1)
    by_label = labels.transpose()
    mean = sp.csr_matrix(
        (weights[by_label.indices], by_label.indices, by_label.indptr), (labels.n_labels, labels.n_texts)
    )
    return at_unit_length(mean @ embeddings, vocabulary, seed)


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    split, encode_texts = inputs.split, inputs.sources.encode_texts
    if encode_texts is None:
        raise ValueError("sources must have encode_texts")
    embeddings = encode_texts(split.texts)
    return embedding_vectors(embeddings, split.labels, split.vocabulary, options.weighting, inputs.seed)


LABEL_VECTORS.register("embedding")(
    LabelVectorKind(_make, needs="encode_texts", instead="'pifa' for the words of texts")
)
