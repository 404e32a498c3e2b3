"""The formats that data sets come in, one file each. The first format that fits reads the data, unless one is named."""

from __future__ import annotations

from pathlib import Path

from longtail.data.formats.base import FORMATS
from longtail.errors import DataError

__all__ = ["FORMATS", "find_format"]


def find_format(path: Path | str, name: str | None = None) -> str:
    """Return the name of the format to read `path` with: `name` if it is given, else the first format that fits.

    `path` is a file or folder, or the address of a database as a text.
    """
    for known in FORMATS.names() if name is None else [name]:
        kind = FORMATS.get(known)  # raises if there is none
        fits = path.startswith(kind.addresses) if isinstance(path, str) else name is not None or kind.fits(path)
        if fits:
            return known
    if isinstance(path, str):
        raise DataError("an address must be of a database of reviews, postgresql://user@host/name; give a file instead")
    raise DataError(f"cannot tell the format of {path}; name one of {', '.join(FORMATS.names())} with `format`")
