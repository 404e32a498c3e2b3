"""Checksums of files, and which files are known to have theirs.

Reading a large model whole takes seconds to minutes, so a file that had its checksum once is not read for it again, as
long as its number on the disk, its size and the times of its last changes stay. These are kept in `verified.json` in
the user's cache folder; where that cannot be written, files are read every time.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from longtail.errors import LongtailError
from longtail.files import write_text

_MOST = 10_000


def sha256(file: Path) -> str:
    """Return the checksum of a file."""
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def first_damaged(checksums: Mapping[Path, str], again: bool, *, settled_after_s: float = 2.0) -> Path | None:
    """Return the first file that has another checksum than it must have.

    With `again` all files are read, known or not. Those changed less than `settled_after_s` ago are not known after
    that: they may change again and keep their times, which are coarse.
    """
    place = _cache_file()
    verified = _read(place)
    n_known = len(verified)
    for file, checksum in checksums.items():
        identity = _identity(file)
        if not again and verified.get(identity) == checksum:
            continue
        if sha256(file) != checksum:
            return file
        status = file.stat()
        if time.time() - max(status.st_mtime, status.st_ctime) > settled_after_s and identity == _identity(file):
            verified[identity] = checksum
    if len(verified) > n_known:
        with suppress(LongtailError):
            write_text(place, json.dumps(dict(list(verified.items())[-_MOST:])))
    return None


def _identity(file: Path) -> str:
    status = file.stat()
    numbers = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return "-".join(map(str, numbers))


def _read(place: Path) -> dict[str, str]:
    with suppress(OSError, ValueError, RecursionError):
        verified = json.loads(place.read_bytes())
        return verified if isinstance(verified, dict) else {}
    return {}


def _cache_file() -> Path:
    parent = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    return Path(parent).expanduser() / "longtail" / "verified.json"
