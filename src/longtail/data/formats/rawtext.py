"""The layout of AttentionXML and LightXML: a file of texts and a file of labels, line by line.

    train_texts.txt or train_raw_texts.txt    one text per line
    train_labels.txt                          label ids separated by white space; an empty line if there are none

The same for dev (also called valid) and test. If a folder has both, raw texts are read.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from longtail.data.dataset import TEXT
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import NumberedOptions, Source, Stream, TextBatch, without_blanks
from longtail.data.formats.splits import SPLITS, need
from longtail.data.lines import COMPRESSIONS, aligned
from longtail.data.names import numbered_names
from longtail.errors import DataError

_KINDS = ("raw_texts", "raw_text", "texts", "text")


class RawtextOptions(NumberedOptions):
    """How a file of texts and a file of labels are read."""


def fits(path: Path) -> bool:
    """Return whether the folder has a file of texts for some split."""
    return bool(_text_files(path))


def read(path: Path, options: RawtextOptions) -> Source:
    """Return one split per pair of files."""
    files = need(path, _text_files(path), "train_texts.txt or train_raw_texts.txt beside train_labels.txt")
    splits = {}
    for split, texts in files.items():
        labels = _find(path, [f"{name}_labels.txt" for name in SPLITS[split]])
        if labels is None:
            raise DataError(f"{path} must have {split}_labels.txt beside {texts.name}, found none")
        splits[split] = Stream(texts, _read(texts, labels, options))
    return Source(splits, **numbered_names(options.label_names))


def _read(texts: Path, labels: Path, options: RawtextOptions) -> Iterator[TextBatch]:
    for text, label in aligned([texts, labels], options.on_bad_utf8, block_bytes=options.block_bytes):
        yield TextBatch(pa.table({TEXT: text}), without_blanks(pc.utf8_split_whitespace(label)))


def _text_files(path: Path) -> dict[str, Path]:
    files = {s: _find(path, [f"{n}_{kind}.txt" for kind, n in product(_KINDS, SPLITS[s])]) for s in SPLITS}
    return {split: file for split, file in files.items() if file is not None}


def _find(path: Path, names: list[str]) -> Path | None:
    files = (path / f"{name}{ending}" for name in names for ending in ("", *COMPRESSIONS))
    return next((file for file in files if file.is_file()), None)


FORMATS.register("rawtext")(Format("train_texts.txt beside train_labels.txt", RawtextOptions, fits, read))
