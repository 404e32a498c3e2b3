"""Label names as vectors by a sentence encoder."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.labels.vectors.base import LABEL_VECTORS, LabelInputs, LabelVectorKind, VectorOptions
from longtail.labels.vectors.random import at_unit_length
from longtail.sparse import sp

_UNKNOWN = "<unk>"
"""Stands for a name of which nothing is left."""


def sentence_vectors(
    vocabulary: Vocabulary, encode_names: Callable[[Sequence[str]], NDArray[np.float32]], seed: int = 0
) -> sp.csr_matrix:
    """Return a vector of length one per label: what `encode_names` makes of its cleaned name."""
    dense = np.array(encode_names([clean_name(name) for name in vocabulary.names]), np.float32)
    if dense.ndim != 2 or len(dense) != len(vocabulary):
        raise DataError(f"vectors of names must be of shape ({len(vocabulary)}, d), one per label, got {dense.shape}")
    if not np.isfinite(dense).all():
        raise DataError("vectors of names must be finite numbers, got NaN or infinity; check the encoder for overflow")
    return at_unit_length(dense, vocabulary, seed)


def clean_name(name: str) -> str:
    """Return a name as running text: `Women%27s_rights` → `Women s rights`; `<unk>` where nothing is left.

    Symbols are not punctuation: `C++` stays. Specified in docs/methods/xbert.md#label-names.
    """
    return " ".join(unquote(name).translate(_SPACES).split()) or _UNKNOWN


class _Spaces(dict[int, int | str]):
    """Table for `str.translate` that turns punctuation, underscores included, into spaces; filled on demand."""

    def __missing__(self, code: int) -> int | str:
        self[code] = " " if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_SPACES = _Spaces()


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    encode_names = inputs.sources.encode_names
    if encode_names is None:
        raise ValueError("sources must have encode_names")
    return sentence_vectors(inputs.split.vocabulary, encode_names, inputs.seed)


LABEL_VECTORS.register("sentence")(
    LabelVectorKind(_make, needs="encode_names", instead="'text' for names by their letters")
)
