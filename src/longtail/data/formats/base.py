"""What a format is, and the registry of formats.

A format has `fits(path)`, which looks at names and the first line, and `read(path, options)`, which returns a `Source`.
A plug-in adds one with an entry point in the group `longtail.formats` that names a `Format`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longtail.data.formats.batch import Source
from longtail.options import Options
from longtail.registry import Registry


@dataclass(frozen=True)
class Format:
    """A way to store texts and labels."""

    about: str
    """What its files look like, in a few words."""
    options: type[Options]
    fits: Callable[[Path], bool]
    """Whether a file or folder looks like this format."""
    read: Callable[[Any, Any], Source]
    """Reads a file or folder with options of the class `options`."""
    addresses: tuple[str, ...] = ()
    """Beginnings of the addresses (`postgresql://`) that it reads beside files; they are handed over as texts."""


FORMATS: Registry[Format] = Registry(
    "format",
    {
        "folder": "longtail.data.formats.folder",
        "table": "longtail.data.formats.table",
        "pecos": "longtail.data.formats.pecos",
        "rawtext": "longtail.data.formats.rawtext",
        "xmc": "longtail.data.formats.xmc",
        "svmlight": "longtail.data.formats.xmc",
        "fasttext": "longtail.data.formats.fasttext",
        "xbert": "longtail.data.formats.xbert",
        "reviews": "longtail.review.source",
    },
)
"""In the order in which they are tried; those of plug-ins come last."""
