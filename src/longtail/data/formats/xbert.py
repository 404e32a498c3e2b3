"""X-BERT's lines, which PECOS' text2text reads too: labels, a tab, the text.

    eggs,boiling<tab>how long to boil an egg

Where labels are numbers, their names may lie in a file of one name a line, or in the `label_vocab.txt` of X-BERT's
releases: a count, a tab, the name. Blank lines count for nothing.
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

from longtail.data.dataset import TEXT
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import NumberedOptions, Source, Stream, TextBatch, without_blanks
from longtail.data.formats.splits import begins_with, need_files
from longtail.data.lines import fault, read_lines
from longtail.data.names import numbered_names

SUFFIXES = (".txt", ".tsv", ".xbert")


class XbertOptions(NumberedOptions):
    """How lines of labels, a tab and a text are read."""

    label_separator: Annotated[str, Field(min_length=1)] = ","
    """Separator of labels."""


def read(path: Path, options: XbertOptions) -> Source:
    """Return one split per file."""
    files = need_files(path, SUFFIXES, "train, dev or test.txt")
    splits = {split: Stream(file, _read(file, options)) for split, file in files.items()}
    return Source(splits, **numbered_names(options.label_names, path, ("label_vocab.txt",)))


def _read(path: Path, options: XbertOptions) -> Iterator[TextBatch]:
    for block in read_lines(path, options.on_bad_utf8, block_bytes=options.block_bytes):
        blank = pc.equal(pc.utf8_trim_whitespace(block.lines), "")
        torn = np.asarray(pc.and_not(pc.invert(pc.match_substring(block.lines, "\t")), blank))
        if torn.any():
            line = int(np.flatnonzero(torn)[0])
            raise fault(path, block.line + line, "a line must be labels, a tab and a text, got no tab")
        lines = block.lines.filter(pc.match_substring(block.lines, "\t"))
        cells = pc.split_pattern(lines, "\t", max_splits=1)
        if len(lines):
            texts = pa.table({TEXT: pc.list_element(cells, 1)})
            yield TextBatch(texts, without_blanks(pc.split_pattern(pc.list_element(cells, 0), options.label_separator)))


FORMATS.register("xbert")(
    Format("lines of labels, a tab and a text", XbertOptions, begins_with(re.compile(".*\t"), SUFFIXES), read)
)
