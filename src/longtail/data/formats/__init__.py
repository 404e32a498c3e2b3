"""The formats that data sets come in, one file each. The first format that fits reads the data, unless one is named."""

from __future__ import annotations

from pathlib import Path

from longtail.data.formats.base import FORMATS
from longtail.errors import DataError

__all__ = ["FORMATS", "find_format"]


def find_format(path: Path, name: str | None = None) -> str:
    """Return the name of the format to read `path` with: `name` if it is given, else the first format that fits."""
    if name is not None:
        FORMATS.get(name)  # raises if there is none
        return name
    for known in FORMATS.names():
        if FORMATS.get(known).fits(path):
            return known
    raise DataError(f"cannot tell the format of {path}; name one of {', '.join(FORMATS.names())} with `format`")
