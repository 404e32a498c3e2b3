"""A number for the content of a text, the same for copies of it.

The numbers are the same in every process and on every machine. They have 64 bits: that any two different texts of a
million share one happens once in some thirty million such data sets.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import as_strings
from longtail.kernels.rows import Rows

_AT_ONCE = 1024


def content_hashes(texts: pa.Table, columns: Sequence[str]) -> NDArray[np.uint64]:
    """Return the hash of each text's content in these columns.

    Case, white space at the ends, and how much of it stands between words make no difference; a missing column counts
    as empty texts.
    """
    hashes = np.empty(len(texts), np.uint64)
    known = [as_strings(texts[name], name) if name in texts.column_names else None for name in columns]
    for start in range(0, len(texts), _AT_ONCE):
        n = min(_AT_ONCE, len(texts) - start)
        columns_here = [[""] * n if column is None else column.slice(start, n).to_pylist() for column in known]
        contents = ("\n".join(map(_plain, fields)) for fields in zip(*columns_here, strict=True))
        hashes[start : start + n] = [_hash_of(content.encode()) for content in contents]
    return hashes


def row_hashes(rows: Rows) -> NDArray[np.uint64]:
    """Return the hash of each sparse row, for data that come as features, without texts."""
    hashes = np.empty(len(rows), np.uint64)
    for number, (start, stop) in enumerate(pairwise(rows.indptr.tolist())):
        hashes[number] = _hash_of(rows.indices[start:stop].tobytes() + rows.values[start:stop].tobytes())
    return hashes


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _hash_of(content: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "little")
