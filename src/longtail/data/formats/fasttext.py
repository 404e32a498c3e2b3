"""fastText's format: labels as words with a prefix, then the text.

    __label__eggs __label__boiling how long to boil an egg

A label may be anywhere in its line, as in fastText itself; the rest is the text. Blank lines are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from longtail.data.dataset import TEXT, Split
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import Source, Stream, TextBatch, TextOptions, grouped
from longtail.data.formats.splits import begins_with, need_files
from longtail.data.lines import read_lines
from longtail.errors import DataError

SUFFIXES = (".txt", ".ft", ".fasttext", ".train", ".valid", ".test")
_SPACE = "[ \t\v\f\r]"


class FasttextOptions(TextOptions):
    """How lines in fastText's format are read."""

    label_prefix: Annotated[str, Field(min_length=1)] = "__label__"
    """The prefix of labels."""


def read(path: Path, options: FasttextOptions) -> Source:
    """Return one split per file."""
    files = need_files(path, SUFFIXES, "train, dev or test.txt")
    return Source({split: Stream(file, _read(file, options)) for split, file in files.items()})


def write(split: Split, path: Path, prefix: str = "__label__") -> None:
    """Write labels and texts; white space in a text becomes one blank, other fields are left out."""
    torn = next((label for label in split.vocabulary.ids if re.search(r"\s", label)), None)
    if torn is not None:
        raise DataError(
            f"a label must not contain white space in fastText's format, got '{torn}'; write .jsonl instead"
        )
    words = [prefix + label for label in split.vocabulary.ids]
    with pa.output_stream(str(path)) as out:
        for start in range(0, len(split), 10_000):
            for number, text in enumerate(split.texts[TEXT].slice(start, 10_000).to_pylist(), start):
                line = [*(words[label] for label in split.labels[number]), re.sub(r"\s+", " ", text)]
                out.write((" ".join(line) + "\n").encode())


def _read(path: Path, options: FasttextOptions) -> Iterator[TextBatch]:
    prefix = re.escape(options.label_prefix)
    for block in read_lines(path, options.on_bad_utf8, block_bytes=options.block_bytes):
        lines = block.lines.filter(pc.not_equal(pc.utf8_trim_whitespace(block.lines), ""))
        words = pc.split_pattern_regex(lines, f"{_SPACE}+")
        flat = words.flatten()
        is_label = pc.starts_with(flat, options.label_prefix)
        is_label = pc.and_(is_label, pc.greater(pc.utf8_length(flat), len(options.label_prefix)))
        rows = np.repeat(np.arange(len(lines)), np.asarray(pc.list_value_length(words)))
        labels = pc.utf8_slice_codeunits(flat.filter(is_label), len(options.label_prefix))
        texts = pc.replace_substring_regex(lines, f"(^|{_SPACE}){prefix}[^ \t\v\f\r]+", "")
        if len(lines):
            texts = pa.table({TEXT: pc.utf8_trim_whitespace(texts)})
            yield TextBatch(texts, grouped(rows[np.asarray(is_label)], labels, len(lines)))


FORMATS.register("fasttext")(
    Format("lines with __label__ words", FasttextOptions, begins_with(re.compile(".*__label__"), SUFFIXES), read)
)
