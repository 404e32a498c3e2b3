"""The formats that data sets come in: one table of names, readers and signs to know them by.

A format's file has `fits(path)`, which looks at names and the first line, and `read(path, options)`, which
returns a `Source`. The first format that fits reads the data, unless one is named.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtail.data.formats import fasttext, folder, jsonl, pecos, rawtext, table, xbert, xmc
from longtail.data.formats.batch import Source
from longtail.errors import ConfigError, DataError, did_you_mean
from longtail.options import Options


@dataclass(frozen=True)
class Format:
    """A way to store texts and labels."""

    about: str
    options: type[Options]
    fits: Callable[[Path], bool]
    read: Callable[[Path, Any], Source]


FORMATS = {
    "folder": Format("JSON lines, or a folder of them with label names", jsonl.JsonlOptions, folder.fits, folder.read),
    "table": Format("CSV, TSV or Parquet", table.TableOptions, table.fits, table.read),
    "pecos": Format("PECOS' X and Y files", pecos.PecosOptions, pecos.fits, pecos.read),
    "rawtext": Format("train_texts.txt beside train_labels.txt", rawtext.RawtextOptions, rawtext.fits, rawtext.read),
    "xmc": Format("sparse features with a first line of counts", xmc.XmcOptions, xmc.fits, xmc.read),
    "svmlight": Format("sparse features", xmc.XmcOptions, xmc.fits_svmlight, xmc.read_svmlight),
    "fasttext": Format("lines with __label__ words", fasttext.FasttextOptions, fasttext.fits, fasttext.read),
    "xbert": Format("lines of labels, a tab and a text", xbert.XbertOptions, xbert.fits, xbert.read),
}
"""In the order in which they are tried."""


def find_format(path: Path, name: str | None = None) -> str:
    """The name of the format to read `path` with."""
    if name is not None:
        if name not in FORMATS:
            hint = did_you_mean(name, FORMATS) or "."
            raise ConfigError(f"unknown format '{name}'{hint} Known are {', '.join(FORMATS)}.")
        return name
    for known, form in FORMATS.items():
        if form.fits(path):
            return known
    raise DataError(f"cannot tell the format of {path}; name one of {', '.join(FORMATS)} with format=")
