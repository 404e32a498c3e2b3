"""Label vectors from a file, such as those that ELMo or any other encoder gives to label names.

    text    a label per line: its id, a tab, numbers with blanks between; also .gz, .bz2, .zst
    numpy   a float array (n, width) in x.npy, and the ids of its rows in x.txt, one per line

A label that the file lacks gets a random direction, as long as the others are on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.lines import bare_stem, bare_suffix, fault, read_rows
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, DataError
from longtail.labels.vectors.base import LABEL_VECTORS, LabelInputs, LabelVectorKind, VectorOptions
from longtail.labels.vectors.random import at_unit_length, random_vectors
from longtail.run.log import LOG
from longtail.sparse import sp
from longtail.text.vectors import numpy_vectors


def file_vectors(path: Path, vocabulary: Vocabulary, *, unit_length: bool = True, seed: int = 0) -> sp.csr_matrix:
    """Return the vector of each label from a file, scaled to length one unless `unit_length` is false."""
    if not path.is_file():
        raise DataError(f"vectors.file must be a file of label vectors; there is no file {path}")
    vectors = _numpy_vectors(path) if bare_suffix(path) == ".npy" else _text_vectors(path)
    places = {label: place for place, label in enumerate(vocabulary.ids)}
    dense, has = np.zeros((0, 0), np.float32), np.zeros(len(places), bool)
    for label, vector in vectors:
        place = places.get(label)
        if place is None:
            continue
        if not has.any():
            dense = np.zeros((len(places), len(vector)), np.float32)
        dense[place], has[place] = vector, True
    if not has.any():
        raise DataError(
            f"{path} holds none of the {len(places):,} labels, such as '{vocabulary.ids[0]}'; name them by id"
        )
    if not np.isfinite(dense).all():
        raise DataError(f"{path}: vectors must be finite numbers, got NaN or infinity")
    if not has.all():
        missing = np.flatnonzero(~has)
        LOG.warning("%d labels have no vector in %s, such as '%s'", len(missing), path, vocabulary.ids[missing[0]])
    if unit_length:
        return at_unit_length(dense, vocabulary, seed)
    lost = [vocabulary.ids[place] for place in np.flatnonzero(~has)]
    dense[~has] = random_vectors(lost, dense.shape[1], seed).toarray() * np.linalg.norm(dense[has], axis=1).mean()
    return sp.csr_matrix(dense)


def _text_vectors(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    width = None
    for number, cells in read_rows(path):
        if len(cells) != 2:
            raise fault(
                path, number, f"must be a label's id, a tab and numbers with blanks between, got {len(cells)} cells"
            )
        try:
            vector = np.array(cells[1].split(), np.float32)
        except ValueError as error:
            raise fault(path, number, f"must have numbers behind the tab ({error})") from error
        width = width or len(vector)
        if len(vector) != width or not width:
            raise fault(path, number, f"must have {width or 'some'} numbers, as the first line has, got {len(vector)}")
        yield cells[0], vector


def _numpy_vectors(path: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    rows = numpy_vectors(path, "labels")
    beside = path.with_name(f"{bare_stem(path)}.txt")
    if not beside.is_file():
        raise DataError(f"{path} needs the ids of its labels, one per line, in {beside.name} beside it; there is none")
    ids = [cells[0] for _, cells in read_rows(beside)]
    if len(ids) != len(rows):
        raise DataError(f"{beside} must have {len(rows):,} ids, one per row of {path.name}, got {len(ids):,}")
    return zip(ids, rows, strict=True)


def _make(inputs: LabelInputs, options: VectorOptions) -> sp.csr_matrix:
    if options.file is None:
        raise ConfigError("vectors.kinds 'file' needs vectors.file, got none; name a file of label vectors")
    path = Path(options.file).expanduser()
    return file_vectors(path, inputs.split.vocabulary, unit_length=options.unit_length, seed=inputs.seed)


LABEL_VECTORS.register("file")(LabelVectorKind(_make))
