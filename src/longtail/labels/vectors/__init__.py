"""A vector for each label, to cluster labels by: from its texts, from its names, or at random. One file per kind.

    pifa       sum of the features of the label's texts, unit length (positive instance feature aggregation)
    embedding  the same over dense embeddings of the texts (X-Transformer's neural PIFA)
    text       character 3–5-grams of the label's names, reduced to `n_components` by SVD, unit length
    sentence   the label's name by a sentence encoder, unit length
    file       what a file has for each label, from any encoder
    random     a random direction, the same for the same label id

Several kinds are put side by side. A label without texts has no PIFA vector: the features of its name take its place
if it has any, else a random direction, so that such labels do not pile up in one cluster. The same goes for a name
without letters and for a vector of zeros.

A plug-in adds a kind with an entry point in the group `longtail.label_vectors` that names a `LabelVectorKind`.
"""

from __future__ import annotations

from longtail.labels.vectors.base import (
    LABEL_VECTORS,
    LabelInputs,
    LabelVectorKind,
    Sources,
    VectorOptions,
    label_vectors,
)

__all__ = ["LABEL_VECTORS", "LabelInputs", "LabelVectorKind", "Sources", "VectorOptions", "label_vectors"]
