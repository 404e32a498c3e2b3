"""PECOS' layout: one text per line, label sets and features as sparse matrices.

    X.trn.txt         one text per line             X.tst.txt
    X.trn.npz         features, if any              X.tst.npz
    Y.trn.npz         label sets (n_texts, n_labels)    Y.tst.npz
    output-items.txt  names of labels, if any: line i names column i

A split needs Y and one of the two X.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from longtail.data.dataset import TEXT
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import NumberedOptions, Source, Stream, TextBatch, grouped, no_texts
from longtail.data.formats.splits import SPLITS, need
from longtail.data.lines import read_lines
from longtail.data.names import numbered_names
from longtail.errors import DataError
from longtail.sparse import checked_csr, sp

_ROWS = 100_000


class PecosOptions(NumberedOptions):
    """How folders in PECOS' layout are read."""


def fits(path: Path) -> bool:
    """Return whether the folder has label sets of some split."""
    return bool(_label_files(path))


def read(path: Path, options: PecosOptions) -> Source:
    """Return one split per file of label sets."""
    files = need(path, _label_files(path), "Y.trn.npz, or Y.tst.npz")
    splits = {split: Stream(file, _read(file, options)) for split, file in files.items()}
    return Source(splits, **numbered_names(options.label_names, path))


def _read(y_file: Path, options: PecosOptions) -> Iterator[TextBatch]:
    stem = y_file.name.removeprefix("Y").removesuffix(".npz")
    texts, x_file = y_file.with_name(f"X{stem}.txt"), y_file.with_name(f"X{stem}.npz")
    labels = _matrix(y_file)
    features = _matrix(x_file) if x_file.is_file() else None
    if features is None and not texts.is_file():
        raise DataError(f"{y_file} must have {texts.name} or {x_file.name} beside it, found neither")
    if features is not None and features.shape[0] != labels.shape[0]:
        raise _uneven(x_file, features.shape[0], y_file, labels.shape[0])
    n_read = 0
    for table in _tables(texts, labels.shape[0], options):
        rows = slice(n_read, n_read + table.num_rows)
        n_read += table.num_rows
        if n_read <= labels.shape[0]:
            yield TextBatch(table, _lists(labels[rows]), None if features is None else features[rows])
    if n_read != labels.shape[0]:
        raise _uneven(texts, n_read, y_file, labels.shape[0])


def _tables(texts: Path, n_texts: int, options: PecosOptions) -> Iterator[pa.Table]:
    if texts.is_file():
        for block in read_lines(texts, options.on_bad_utf8, block_bytes=options.block_bytes):
            yield pa.table({TEXT: block.lines})
    else:
        for start in range(0, n_texts, _ROWS):
            yield no_texts(min(_ROWS, n_texts - start))


def _lists(labels: Any) -> pa.ListArray:
    rows = np.repeat(np.arange(labels.shape[0]), np.diff(labels.indptr))
    return grouped(rows, pa.array(labels.indices).cast(pa.string()), labels.shape[0])


def _matrix(path: Path) -> Any:
    try:
        stored = sp.load_npz(path)
    except Exception as error:  # those of zip files, of numpy and of scipy have no class in common
        raise DataError(f"{path} must be a sparse matrix as scipy.sparse.save_npz writes it: {error}") from error
    matrix = sp.csr_matrix(checked_csr(stored, str(path)), dtype=np.float32)
    matrix.eliminate_zeros()
    return matrix


def _uneven(path: Path, n: int, other: Path, n_other: int) -> DataError:
    return DataError(f"{path} and {other.name} must have the same number of texts, got {n:,} and {n_other:,}")


def _label_files(path: Path) -> dict[str, Path]:
    possible = {split: [path / f"Y.{name}.npz" for name in names] for split, names in SPLITS.items()}
    return {split: file for split, files in possible.items() for file in files if file.is_file()}


FORMATS.register("pecos")(Format("PECOS' X and Y files", PecosOptions, fits, read))
