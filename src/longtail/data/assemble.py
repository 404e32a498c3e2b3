"""Assemble a data set from streams of batches: one table of texts per split, numbered labels, one vocabulary.

    Source(splits: name -> batches)  ->  Dataset

While reading, labels are numbered in the order of their first appearance in any split. At the end those that are names
in the vocabulary get its ids, and all are renumbered in the order of their ids, so that the order depends only on which
labels there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import TEXT, Dataset, Split
from longtail.data.formats.batch import Source, Stream, TextBatch
from longtail.data.matching import ids_in, log_concepts
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.run.progress import SILENT, Progress
from longtail.sparse import checked_csr, sp
from longtail.types import LabelMatrix

MOST_LABELS = 100_000
"""A text with more labels than that is a broken line; real ones have thousands at most."""


def assemble(
    source: Source,
    name: str,
    vocabulary: Vocabulary | None = None,
    facts: Mapping[str, Any] | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Read all splits of `source` into a data set called `name`.

    Args:
        source: What a format's reader returned.
        name: The name of the data set.
        vocabulary: Names the labels, and has the ids of those that are given as names; it wins over the source's own.
        facts: Where the data came from.
        progress: Reports how many texts are read.
    """
    number: dict[str, int] = {}
    read = {split: _read(split, stream, number, progress) for split, stream in source.splits.items()}
    listed = source.labels.ids if source.labels is not None else []
    known = [v for v in (vocabulary, source.labels, source.official, source.hierarchy) if v is not None]
    official = vocabulary if vocabulary is not None else source.official
    id_of = ids_in(official if official is not None else source.labels, [*number, *listed])
    labels = Vocabulary.of(sorted(set(id_of.values()))).described_by(*known)
    position = labels.position
    moved = np.fromiter((position[id_of[label]] for label in number), np.int64, len(number))
    n_features = max((part.features.shape[1] for part in read.values() if part.features is not None), default=0)
    splits = {split: part.finish(labels, moved, n_features) for split, part in read.items()}
    if official is not None and source.hierarchy is not None:
        official = official.described_by(official, source.hierarchy)
    splits = {split: replace(part, official=official) for split, part in splits.items()}
    if official is not None:
        log_concepts(official, labels)
    return Dataset(name, splits, labels, dict(facts or {}), official)


@dataclass(frozen=True, eq=False)
class _ReadSplit:
    """A split whose labels are numbered in the order of their first appearance."""

    texts: pa.Table
    counts: NDArray[np.int32]  # (n_texts,) labels per text
    numbers: NDArray[np.int32]  # (n_assignments,)
    features: Any | None

    def finish(self, vocabulary: Vocabulary, moved: NDArray[np.int64], n_features: int) -> Split:
        """Return the split with labels numbered as in `vocabulary`, and with `n_features` columns of features."""
        rows = np.repeat(np.arange(len(self.counts)), self.counts)
        labels = LabelMatrix.from_pairs(rows, moved[self.numbers], len(self.counts), len(vocabulary))
        if self.features is not None:
            self.features.resize(len(self.counts), n_features)
        return Split(self.texts, labels, vocabulary, self.features)


def _read(split: str, stream: Stream, number: dict[str, int], progress: Progress) -> _ReadSplit:
    n_texts = 0
    tables, counts, numbers, features = [], [], [], []
    not_texts: set[str] = set()
    with progress.step(f"read {split}", unit="texts") as advance:
        for batch in stream.batches:
            tables.append(batch.texts)
            counts.append(_label_counts(batch, stream.path, n_texts))
            numbers.append(_numbered(batch.labels.flatten(), number))
            features.append(batch.features)
            not_texts |= batch.not_texts
            n_texts += batch.texts.num_rows
            advance(batch.texts.num_rows)
    if not tables:
        raise DataError(f"{stream.path} must hold at least one text, it is empty; remove it or fill it")
    return _ReadSplit(
        _below(tables, not_texts), np.concatenate(counts), np.concatenate(numbers), _stacked(features, stream.path)
    )


def _label_counts(batch: TextBatch, path: Path, n_before: int) -> NDArray[np.int32]:
    """Return how many labels each text has: (n_texts,); raise if one has so many that they cannot be labels."""
    counts = np.asarray(pc.list_value_length(batch.labels), np.int32)
    if len(counts) and counts.max() > MOST_LABELS:
        text, n_labels = n_before + int(counts.argmax()) + 1, int(counts.max())
        raise DataError(
            f"{path}: a text must have at most {MOST_LABELS:,} labels, text {text:,} has {n_labels:,}; check how "
            "labels are separated"
        )
    return counts


def _numbered(labels: pa.Array, number: dict[str, int]) -> NDArray[np.int32]:
    coded = labels.dictionary_encode()
    new = np.array([number.setdefault(label, len(number)) for label in coded.dictionary.to_pylist()], np.int32)
    return new[np.asarray(coded.indices, np.int64)]


def _below(tables: list[pa.Table], not_texts: set[str]) -> pa.Table:
    """Return one table of all batches; a column that a batch does not have is empty there."""
    names = dict.fromkeys(name for table in tables for name in table.column_names if name not in not_texts)
    columns = {}
    for name in (TEXT, *(name for name in names if name != TEXT)):
        pieces = [t[name] if name in t.column_names else pa.chunked_array([pa.repeat("", len(t))]) for t in tables]
        columns[name] = pa.chunked_array([chunk for piece in pieces for chunk in piece.chunks], pa.string())
    return pa.table(columns)


def _stacked(features: list[Any], path: Path) -> Any | None:
    if features[0] is None:
        return None
    features = [checked_csr(block, f"the features of {path}") for block in features]
    widest = max(block.shape[1] for block in features)
    for block in features:
        block.resize(block.shape[0], widest)
    return sp.csr_matrix(sp.vstack(features, "csr", np.float32))
