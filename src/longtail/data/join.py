"""Put the texts of two data sets into one.

joined(reviews, archive)  ->  the texts of `reviews`, then those of `archive` that are not among them
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.types import LabelMatrix

_ID = "id"
"""A column that tells texts apart and is no text itself."""


def joined(first: Split, further: Split) -> Split:
    """Return the texts of both, with the labels of `first` where both have a text.

    A text is the same if all columns that both have are. Columns that one of them lacks are empty there. The
    vocabulary has the labels of both, in the order of their ids.
    """
    if not (first.has_texts and further.has_texts):
        raise DataError("only texts can be joined, got data that are features; give both as texts")
    rest = further.take(~_occurs_in(further, first))
    vocabulary = Vocabulary.of(sorted({*first.vocabulary.ids, *rest.vocabulary.ids}))
    vocabulary = vocabulary.described_by(rest.vocabulary, first.vocabulary)
    both = (first.over(vocabulary), rest.over(vocabulary))
    names = dict.fromkeys(name for split in both for name in split.texts.column_names)
    texts = pa.table({name: _column([split.texts for split in both], name) for name in names})
    indptr = np.concatenate([both[0].labels.indptr, both[0].labels.indptr[-1] + both[1].labels.indptr[1:]])
    indices = np.concatenate([split.labels.indices for split in both])
    official = further.official if further.official is not None else first.official
    return Split(texts, LabelMatrix(indptr, indices, len(vocabulary)), vocabulary, official=official)


def _occurs_in(split: Split, other: Split) -> NDArray[np.bool_]:
    """Return which texts of `split` are texts of `other`: (n_texts,)."""
    columns = sorted({*split.texts.column_names} & {*other.texts.column_names} - {_ID})
    return np.asarray(pc.is_in(_whole(split.texts, columns), value_set=_whole(other.texts, columns)), bool)


def _whole(texts: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(
        *(texts[name].cast(pa.large_string()) for name in columns), pa.scalar("\0", pa.large_string())
    )


def _column(tables: Sequence[pa.Table], name: str) -> pa.ChunkedArray:
    pieces = [t[name] if name in t.column_names else pa.chunked_array([pa.repeat("", len(t))]) for t in tables]
    return pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks], pa.string())
