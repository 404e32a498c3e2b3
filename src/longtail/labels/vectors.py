"""A vector for each label: from its texts, from its names, or at random.

    pifa       sum of the features of the label's texts, unit length (positive instance feature aggregation)
    embedding  the same over dense embeddings of the texts (X-Transformer's neural PIFA)
    text       character 3–5-grams of the label's names, reduced to `n_components` by SVD, unit length
    sentence   the label's name by a sentence encoder, unit length
    random     a random direction, the same for the same label id

Encoders are no part of this package: who has one hands over embeddings, or a function that makes them.

Several kinds are put side by side. A label without texts has no PIFA vector: the features of its name
take its place if it has any, else a random direction, so that such labels don't pile up in one cluster. So it is
for a name without letters, too, and for a vector of zeros.
"""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.data.vocabulary import Vocabulary
from longtail.engines.local import LocalEngine
from longtail.errors import ConfigError, DataError
from longtail.kernels.native.rows import sum_rows
from longtail.kernels.rows import Rows
from longtail.options import Options
from longtail.progress import SILENT, Progress
from longtail.sparse import sp
from longtail.types import LabelMatrix

Kind = Literal["pifa", "embedding", "text", "sentence", "random"]
Sentences = Callable[[Sequence[str]], NDArray[np.float32]]
"""Names (n) → vectors (n, d)."""
T = TypeVar("T")
UNKNOWN = "<unk>"
"""What stands for a name of which nothing is left."""
_RANDOM_FEATURES = 8
_LOST = 1e-6
"""A name whose vector is shorter has nothing in common with the components that were kept."""


class VectorOptions(Options):
    """What labels are clustered by."""

    kinds: tuple[Kind, ...] = Field(("pifa",), min_length=1)
    """Which vectors, side by side."""
    weighting: Literal["paper", "code", "fixed"] = "fixed"
    """PIFA: every text counts the same (`paper`, `fixed`), or by 1/√(its number of labels) (`code`: X-BERT, PECOS).
    So for `embedding`."""
    max_weights: PositiveInt = 300
    """PIFA: the largest weights kept of a label; bounds memory where labels have very many texts."""
    n_components: PositiveInt = 256
    """text: numbers a label after the SVD."""


def label_vectors(
    features: Rows,
    labels: LabelMatrix,
    vocabulary: Vocabulary,
    options: VectorOptions,
    seed: int = 0,
    name_features: Callable[[Sequence[str]], Rows | None] | None = None,
    engine: LocalEngine | None = None,
    progress: Progress = SILENT,
    sentences: Sentences | None = None,
    embeddings: NDArray[np.float32] | None = None,
) -> sp.csr_matrix:
    """One row a label; `name_features` turns label names into rows like `features`, for labels without texts.

    `sentence` needs `sentences`, an encoder of names; `embedding` needs `embeddings` (n_texts, d) of the texts.
    """
    engine = engine or LocalEngine()
    for kind in options.kinds:  # before any work is done
        _given({"sentence": sentences, "embedding": embeddings}.get(kind, kind), kind)
    make = {
        "embedding": lambda: embedding_vectors(_given(embeddings, "embedding"), labels, vocabulary, options, seed),
        "sentence": lambda: sentence_vectors(vocabulary, _given(sentences, "sentence"), seed),
        "pifa": lambda: _pifa_for_all(features, labels, vocabulary, options, seed, name_features, engine, progress),
        "text": lambda: text_vectors(vocabulary, options.n_components, seed),
        "random": lambda: random_vectors(vocabulary.ids, options.n_components, seed),
    }
    parts = [make[kind]() for kind in options.kinds]
    if len(parts) == 1:
        return parts[0]
    return sp.hstack([part / np.sqrt(len(parts)) for part in parts], format="csr", dtype=np.float32)


def pifa(
    features: Rows,
    labels: LabelMatrix,
    weighting: Literal["paper", "code", "fixed"] = "fixed",
    max_weights: int = 300,
    engine: LocalEngine | None = None,
    progress: Progress = SILENT,
) -> sp.csr_matrix:
    """Unit-length sums of the features of each label's texts; a zero row for a label without texts."""
    engine = engine or LocalEngine()
    by_label = labels.transpose()
    share = _share(labels, weighting)
    lengths = np.diff(features.indptr)

    def some(span: tuple[int, int]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        group_ptr = by_label.indptr[span[0] : span[1] + 1]
        texts = by_label.indices[group_ptr[0] : group_ptr[-1]]
        ends = np.concatenate([[0], np.cumsum(lengths[texts])])
        room = np.minimum(np.diff(ends[group_ptr - group_ptr[0]]), max_weights).sum()
        indptr = np.zeros(len(group_ptr), np.int64)
        indices, values = np.empty(room, np.int32), np.empty(room, np.float32)
        sum_rows(
            features.indptr, features.indices, features.values, features.n_columns,
            group_ptr - group_ptr[0], texts, share[texts], max_weights, indptr, indices, values,
        )  # fmt: skip
        return np.diff(indptr), indices[: indptr[-1]].copy(), values[: indptr[-1]].copy()

    spans = _spans(by_label.indptr, 1 << 14)
    found = []
    with progress.step("label vectors", by_label.n_texts, "labels") as advance:
        for span, part in zip(spans, engine.map(some, spans), strict=True):
            found.append(part)
            advance(span[1] - span[0])
    indptr = np.concatenate([[0], *(part[0] for part in found)]).cumsum()
    indices, values = np.empty(indptr[-1], np.int32), np.empty(indptr[-1], np.float32)
    stop = indptr[-1]
    while found:  # each part is let go as it is copied, because all together are large
        _, own, weights = found.pop()
        start = stop - len(own)
        indices[start:stop], values[start:stop] = own, weights
        stop = start
    return sp.csr_matrix((values, indices, indptr), shape=(by_label.n_texts, features.n_columns))


def text_vectors(vocabulary: Vocabulary, n_components: int, seed: int = 0) -> sp.csr_matrix:
    """Character 3–5-grams of names and alternatives, by SVD to `n_components`, unit length."""
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
    return _at_unit_length(dense, vocabulary, seed)


def sentence_vectors(vocabulary: Vocabulary, sentences: Sentences, seed: int = 0) -> sp.csr_matrix:
    """The cleaned name of each label by an encoder, unit length."""
    dense = np.array(sentences([clean_name(name) for name in vocabulary.names]), np.float32)
    if dense.ndim != 2 or len(dense) != len(vocabulary):
        raise DataError(f"vectors of names must be of shape ({len(vocabulary)}, d), one a label, got {dense.shape}")
    if not np.isfinite(dense).all():
        raise DataError("vectors of names must be numbers, got NaN or infinity; look for an encoder that overflows")
    return _at_unit_length(dense, vocabulary, seed)


def clean_name(name: str) -> str:
    """A name as running text: `Women%27s_rights` → `Women s rights`; `<unk>` where nothing is left (methods.md A.2).

    Symbols are no punctuation: `C++` stays.
    """
    return " ".join(unquote(name).translate(_SPACES).split()) or UNKNOWN


def embedding_vectors(
    embeddings: NDArray[np.float32], labels: LabelMatrix, vocabulary: Vocabulary, options: VectorOptions, seed: int = 0
) -> sp.csr_matrix:
    """Unit-length sums of the unit-length embeddings of each label's texts; at random for a label without texts."""
    embeddings = np.asarray(embeddings, np.float32)
    if embeddings.ndim != 2 or len(embeddings) != labels.n_texts:
        raise DataError(f"embeddings must be of shape ({labels.n_texts}, d), one a text, got {embeddings.shape}")
    lengths = np.sqrt(np.einsum("ij,ij->i", embeddings, embeddings))
    if not np.isfinite(lengths).all():
        raise DataError("embeddings must be numbers, got NaN or infinity; look for an encoder that overflows")
    share = _share(labels, options.weighting) / np.where(lengths > 0, lengths, 1)
    by_label = labels.transpose()
    weights = sp.csr_matrix(
        (share[by_label.indices], by_label.indices, by_label.indptr), (labels.n_labels, labels.n_texts)
    )
    return _at_unit_length(weights @ embeddings, vocabulary, seed)


def random_vectors(ids: Sequence[str], n_components: int, seed: int = 0) -> sp.csr_matrix:
    """A random direction a label, drawn from the label's id and the seed."""
    rows = [np.random.default_rng([seed, zlib.crc32(i.encode())]).standard_normal(n_components) for i in ids]
    dense = np.array(rows, np.float32).reshape(len(ids), n_components)
    return sp.csr_matrix(dense / np.linalg.norm(dense, axis=1, keepdims=True))


def _pifa_for_all(
    features: Rows,
    labels: LabelMatrix,
    vocabulary: Vocabulary,
    options: VectorOptions,
    seed: int,
    name_features: Callable[[Sequence[str]], Rows | None] | None,
    engine: LocalEngine,
    progress: Progress,
) -> sp.csr_matrix:
    """PIFA, with names or a random direction where a label has no texts (or texts without features)."""
    vectors = pifa(features, labels, options.weighting, options.max_weights, engine, progress)
    empty = np.flatnonzero(np.diff(vectors.indptr) == 0)
    if not len(empty):
        return vectors
    fill = sp.lil_matrix((len(empty), features.n_columns), dtype=np.float32)
    names = [vocabulary.names[at] for at in empty]
    named = name_features(names) if name_features else None
    if named is not None:
        fill = named.matrix().tolil()
    for at in np.flatnonzero(fill.getnnz(axis=1) == 0):
        generator = np.random.default_rng([seed, zlib.crc32(vocabulary.ids[empty[at]].encode())])
        columns = generator.choice(features.n_columns, min(_RANDOM_FEATURES, features.n_columns), replace=False)
        fill[at, columns] = 1 / np.sqrt(len(columns))
    place = sp.csr_matrix(
        (np.ones(len(empty), np.float32), (empty, np.arange(len(empty)))), (len(vocabulary), len(empty))
    )
    return (vectors + place @ fill.tocsr()).tocsr()


class _Spaces(dict[int, int | str]):
    """For `str.translate`: punctuation, underscores among it, becomes spaces; found out once a letter."""

    def __missing__(self, code: int) -> int | str:
        self[code] = " " if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_SPACES = _Spaces()


def _given(thing: T | None, kind: Kind) -> T:
    """What an encoder made, or a word to who has none."""
    if thing is None:
        instead = {"sentence": "'text' for names by their letters", "embedding": "'pifa' for the words of texts"}[kind]
        raise ConfigError(
            f"vectors.kinds '{kind}' needs a neural encoder, which this method has not; "
            f"use --method xbert, or {instead}"
        )
    return thing


def _share(labels: LabelMatrix, weighting: Literal["paper", "code", "fixed"]) -> NDArray[np.float32]:
    """How much each text counts for its labels."""
    if weighting == "code":
        return (1 / np.sqrt(np.maximum(labels.labels_per_text(), 1))).astype(np.float32)
    return np.ones(labels.n_texts, np.float32)


def _at_unit_length(dense: NDArray[np.float32], vocabulary: Vocabulary, seed: int) -> sp.csr_matrix:
    """Vectors (n_labels, d) at unit length, random directions in place of those that say nothing."""
    norms = np.linalg.norm(dense, axis=1, keepdims=True)
    lost = np.flatnonzero(norms < _LOST)
    dense[lost] = random_vectors([vocabulary.ids[at] for at in lost], dense.shape[1], seed).toarray()
    norms[lost] = 1
    dense /= norms
    return sp.csr_matrix(dense)


def _spans(indptr: NDArray[np.int64], size: int) -> list[tuple[int, int]]:
    """Neighbouring rows in spans of about `size` entries."""
    n = len(indptr) - 1
    cuts = np.searchsorted(indptr, np.arange(size, indptr[-1], size))
    edges = np.unique(np.concatenate([[0], cuts, [n]]))
    return [(int(a), int(b)) for a, b in pairwise(edges)]
