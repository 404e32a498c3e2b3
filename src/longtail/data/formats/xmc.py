"""Sparse features with labels: the XMC repository's files, and svmlight's, which lack the first line.

    3 1617899 31           texts, features, labels: only in `xmc`
    12,7 0:0.5 98:1.25     labels, then feature:value pairs
     5:1                   no labels

Such data have no texts: their splits hold features (n_texts, n_features) beside empty texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from longtail.data.dataset import Split
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import NumberedOptions, Source, Stream, TextBatch, no_texts, without_blanks
from longtail.data.formats.splits import begins_with, need_files
from longtail.data.lines import LineBlock, fault, read_lines
from longtail.data.names import numbered_names
from longtail.errors import DataError
from longtail.sparse import MAX_COLUMNS, sp

SUFFIXES = (".txt", ".svm", ".svmlight", ".libsvm")
# Nothing that has matched is tried again in another way: a line of 100,000 digits is read once.
_NUMBER = r"[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?"
_PAIRS = rf"(?:[ \t]++\d++:{_NUMBER})*+[ \t]*+"
_HEADER = re.compile(r"\s*+(\d{1,18})\s++(\d{1,18})\s++(\d{1,18})\s*+$")
_LABELS_AND_PAIR = re.compile(rf"(\d+(,\d+)*)?[ \t]*\b\d+:{_NUMBER}([ \t]|$)")
_LINE = re.compile(rf"(?:[^ \t:]*+|\d++:{_NUMBER}){_PAIRS}")
_SHOWN = 60
_MOST_DIGITS = 18


class XmcOptions(NumberedOptions):
    """How files of sparse features are read."""


def read(path: Path, options: XmcOptions) -> Source:
    """Return splits of files whose first line counts texts, features and labels."""
    return _source(path, options, has_header=True)


def read_svmlight(path: Path, options: XmcOptions) -> Source:
    """Return splits of files without such a line."""
    return _source(path, options, has_header=False)


def write(split: Split, path: Path, header: bool = True) -> None:
    """Write features and label numbers; label ids are not written."""
    if split.features is None:
        raise DataError(f"{path}: only a split with features can be written in this format; write .jsonl instead")
    features = split.features
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        if header:
            out.write(f"{len(split)} {features.shape[1]} {split.labels.n_labels}\n")
        for row in range(len(split)):
            part = slice(features.indptr[row], features.indptr[row + 1])
            pairs = zip(features.indices[part].tolist(), features.data[part].tolist(), strict=True)
            out.write(" ".join([",".join(map(str, split.labels[row])), *(f"{f}:{v!r}" for f, v in pairs)]) + "\n")


def _source(path: Path, options: XmcOptions, has_header: bool) -> Source:
    files = need_files(path, SUFFIXES, "train, dev or test.txt")
    splits = {split: Stream(file, _read(file, options, has_header)) for split, file in files.items()}
    return Source(splits, **numbered_names(options.label_names, path))


def _read(path: Path, options: XmcOptions, has_header: bool) -> Iterator[TextBatch]:
    n_texts = n_features = n_read = 0
    for block in read_lines(path, options.on_bad_utf8, block_bytes=options.block_bytes):
        if has_header and block.line == 1:
            n_texts, n_features = _counts(path, block.lines[0].as_py())
            block = LineBlock(block.lines.slice(1), 2)
        n_read += len(block.lines)
        if len(block.lines):
            yield _parse(path, block, n_features if has_header else None)
    if has_header and n_read != n_texts:
        raise DataError(f"{path} must hold {n_texts:,} texts as its first line says, got {n_read:,}")


def _counts(path: Path, line: str) -> tuple[int, int]:
    counts = _HEADER.fullmatch(line)
    if counts is None:
        what = f"the first line must hold the numbers of texts, features and labels, got {line[:_SHOWN]!r}"
        raise fault(path, 1, f"{what}; read it with `format=svmlight` if it has no such line")
    return int(counts[1]), int(counts[2])


def _parse(path: Path, block: LineBlock, n_features: int | None) -> TextBatch:
    lines = pc.replace_substring(block.lines, "\t", " ")
    first = pc.list_element(pc.split_pattern(lines, " ", max_splits=1), 0)
    first = pc.if_else(pc.match_substring(first, ":"), "", first)
    labels = without_blanks(pc.split_pattern(first, ","))
    features = _features(lines, n_features)
    if features is None:
        raise _line_fault(path, block, n_features)
    return TextBatch(no_texts(len(lines)), labels, features)


def _features(lines: pa.Array, n_features: int | None) -> Any | None:
    """Return the pairs of each line as a CSR matrix; None if there is anything else."""
    words = pc.split_pattern(lines, " ")
    rows = np.repeat(np.arange(len(lines)), np.asarray(pc.list_value_length(words)))
    flat = words.flatten()
    # The first word of a line is its labels, unless it is a pair.
    is_pair = np.array(pc.not_equal(flat, ""))
    firsts = np.searchsorted(rows, np.arange(len(lines)))
    is_pair[firsts] = np.asarray(pc.match_substring(flat.take(pa.array(firsts)), ":"))
    pairs = pc.split_pattern(flat.filter(pa.array(is_pair)), ":")
    if not (np.asarray(pc.list_value_length(pairs)) == 2).all():
        return None
    halves = pairs.flatten()
    try:
        ids = np.array(halves.take(pa.array(np.arange(0, len(halves), 2))).cast(pa.int32()))
        values = np.array(halves.take(pa.array(np.arange(1, len(halves), 2))).cast(pa.float32()))
    except pa.ArrowInvalid:
        return None
    width = n_features if n_features is not None else int(ids.max(initial=-1)) + 1
    if (ids < 0).any() or (ids >= min(width, MAX_COLUMNS)).any() or not np.isfinite(values).all():
        return None
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[is_pair], minlength=len(lines)))])
    matrix = sp.csr_matrix((values, ids, indptr), shape=(len(lines), width))
    matrix.sum_duplicates()
    return matrix


def _line_fault(path: Path, block: LineBlock, n_features: int | None) -> DataError:
    most = min(n_features or MAX_COLUMNS, MAX_COLUMNS) - 1
    for number, line in enumerate(block.lines.to_pylist(), block.line):
        if not _LINE.fullmatch(line):
            return fault(path, number, f"a line must be labels and feature:value pairs, got {line[:_SHOWN]!r}")
        for feature, value in (word.split(":") for word in line.split() if ":" in word):
            if len(feature.lstrip("0")) > _MOST_DIGITS or int(feature) > most:
                return fault(path, number, f"a feature must be at most {most:,}, got {feature[:_SHOWN]}; renumber them")
            if abs(float(value)) > float(np.finfo(np.float32).max):
                return fault(path, number, f"a value must be a finite number, got {value[:_SHOWN]}")
    return DataError(f"cannot read {path}: a line from {block.line} on is not as it must be")


FORMATS.register("xmc")(
    Format("sparse features with a first line of counts", XmcOptions, begins_with(_HEADER, SUFFIXES), read)
)
FORMATS.register("svmlight")(
    Format("sparse features", XmcOptions, begins_with(_LABELS_AND_PAIR, SUFFIXES), read_svmlight)
)
