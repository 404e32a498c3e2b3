"""Replace a folder in one step: a kill leaves the old one or the new one, and readers see one of them.

    .NAME.PID.tmp  ->  NAME    the new folder, once it is whole
    NAME  ->  .NAME.PID.old    the older one, until the new one has its place

The process that replaces a folder holds its lock (`longtail.files.FileLock`). A replacement that was killed between its
two renames is undone by the next reader or writer.
"""

from __future__ import annotations

import glob
import re
import time
from contextlib import suppress
from pathlib import Path

from longtail.files import FileLock, remove

_REPLACED_WITHIN_S = 2.0
"""How long a reader waits for the two renames of a process that replaces a folder."""


def swap_in(temporary: Path, final: Path) -> None:
    """Rename into place; an older folder is moved aside first and deleted only when the new one is there."""
    aside = temporary.with_suffix(".old")
    try:
        if final.exists():
            final.rename(aside)
        temporary.rename(final)
    finally:
        if aside.exists() and not final.exists():  # an error, or Ctrl-C between the two
            aside.rename(final)
    remove(aside)


def settle(final: Path) -> None:
    """Undo a replacement that was killed between its two renames, and remove what others left; `final` is locked.

    Between them, and only then, a process has both the new folder and the one moved aside. Without the new one, the
    one moved aside has been replaced and never comes back.
    """
    for path in _leftovers(final):
        if path.suffix == ".old" and path.with_suffix(".tmp").exists() and not final.exists():
            path.rename(final)
    for path in _leftovers(final):
        remove(path)


def _leftovers(final: Path) -> list[Path]:
    """Return what processes, dead or alive, call `final` while they write or replace it."""
    beside = final.parent.glob(f".{glob.escape(final.name)}.*")
    return sorted(path for path in beside if re.fullmatch(r"\.\d+\.(tmp|old)", path.name[len(final.name) + 1 :]))


def await_replacement(final: Path) -> None:
    """Where a folder is missing because it is being replaced: wait if the process lives, undo it if it was killed."""
    lock = FileLock(final)
    end = time.monotonic() + _REPLACED_WITHIN_S
    with suppress(OSError):
        while not final.exists() and any(path.suffix == ".old" for path in _leftovers(final)):
            if lock.acquire(wait=False):
                settle(final)
                lock.release()
            elif time.monotonic() > end:
                return
            else:
                time.sleep(0.01)
