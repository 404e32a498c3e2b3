"""Label names as vectors: character 3–5-grams by TF-IDF, reduced by SVD."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from longtail.data.vocabulary import Vocabulary
from longtail.labels.vectors.base import LABEL_VECTORS, LabelInputs, LabelVectorKind, VectorOptions
from longtail.labels.vectors.random import at_unit_length, random_vectors
from longtail.sparse import sp


def text_vectors(vocabulary: Vocabulary, n_components: int, seed: int = 0) -> sp.csr_matrix:
    """Return a vector of length one per label, from the 3–5-grams of its name and alternatives.

    There are at most `n_components` columns, fewer where there are fewer labels or grams.
    """
    from sklearn.decomposition import TruncatedSVD

    from longtail.text.fields import FieldOptions, TfidfOptions
    from longtail.text.tfidf import Tfidf

    names = [" ".join([name, *vocabulary.alternatives(at)]) for at, name in enumerate(vocabulary.names)]
    block = FieldOptions(words=None, chars=(3, 5), min_df=1)
    grams = Tfidf(TfidfOptions(blocks=(block,))).fit_transform(pa.table({"text": pa.array(names, pa.string())}))
    n_components = min(n_components, min(grams.shape) - 1)
    if n_components < 1:
        return random_vectors(vocabulary.ids, 1, seed)
    dense = TruncatedSVD(n_components, random_state=seed).fit_transform(grams).astype(np.float32)
    return at_unit_length(dense, vocabulary, seed)


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    return text_vectors(inputs.split.vocabulary, options.n_components, inputs.seed)


LABEL_VECTORS.register("text")(LabelVectorKind(_make))
