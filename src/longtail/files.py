"""Files and folders that take their names only when they are whole, and locks that end with their process.

    with whole(path) as temporary: ...    `path` is replaced at the end, or stays as it was
    with held(FileLock(path)): ...        the lock of `path` is held in the block

Until then it is called `.PID.NAME`; what a killed process left of it is removed by the next one that writes NAME. A
lock is a file `.NAME.lock` that the system locks for a process: one that a dead process left behind is free.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from longtail.errors import ConfigError, LongtailError

_OPEN_FILES = ("/dev/std", "/dev/fd/", "/proc/")
"""What begins so is the name of an open file, whatever it looks like."""


class FileLock:
    """The lock of a path, held by one process at a time."""

    def __init__(self, path: Path) -> None:
        self.file = path.with_name(f".{path.name}.lock")
        self._descriptor: int | None = None

    def acquire(self, wait: bool = True) -> bool:
        """Take the lock; return False if another holds it and `wait` is false."""
        while True:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            if not _take(descriptor, wait):
                os.close(descriptor)
                return False
            with suppress(OSError):
                if os.path.samestat(os.fstat(descriptor), self.file.stat()):
                    self._descriptor = descriptor
                    return True
            os.close(descriptor)  # its holder has removed the file, so this lock is void

    def release(self) -> None:
        """Give the lock back, and remove its file."""
        if self._descriptor is not None:
            try:
                with suppress(OSError):  # Windows removes no open file; the next one takes it over
                    self.file.unlink()
            finally:
                os.close(self._descriptor)
                self._descriptor = None


@contextmanager
def held(lock: FileLock) -> Iterator[None]:
    """Wait for the lock and hold it."""
    lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def whole(path: Path, *, parents: bool = False) -> Iterator[Path]:
    """Yield a temporary path, of a file or a folder, that replaces `path` if nothing is raised.

    A link stays and what it names is replaced. Devices and pipes are never replaced: they are yielded themselves. With
    `parents`, folders above it are made.
    """
    try:
        if is_stream(path):
            yield path
            return
        final = link_target(path)
        if parents:
            final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final)
        temporary = final.with_name(f".{os.getpid()}.{final.name}")  # the suffix stays: it names the format
        with held(FileLock(temporary)):
            try:
                yield temporary
                temporary.replace(final)
            finally:
                remove(temporary)
    except OSError as error:
        raise LongtailError(f"cannot write {path}: {error.strerror or error}; choose another place") from error


def as_path(path: str | Path) -> Path:
    """Return a path that a caller gave; raise if it is none."""
    if not isinstance(path, str | Path) or "\0" in str(path):
        raise ConfigError(f"a path must be a text without null characters, got {path!r:.60}")
    return Path(path)


def link_target(path: Path) -> Path:
    """Return what a link names in the end, as a whole path; raise if links lead back to themselves."""
    final = Path(os.path.realpath(path))
    with suppress(OSError):  # of names that are too long: opening them reports that
        if final.is_symlink():
            raise LongtailError(f"{path} must not be a link that leads back to itself; give another place")
    return final


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all, in UTF-8; folders above it are made."""
    with whole(path, parents=True) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def is_stream(path: Path) -> bool:
    """Return whether `path` is a device, a pipe or an open file, which are written to but never replaced."""
    if os.fspath(path.absolute()).startswith(_OPEN_FILES):
        return True
    with suppress(OSError):
        mode = path.stat().st_mode
        return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
    return False


def _sweep(final: Path) -> None:
    """Remove what dead processes left of their writing `final`."""
    for path in final.parent.glob(f".*.{glob.escape(final.name)}"):
        lock = FileLock(path)
        if re.fullmatch(r"\.\d+\.", path.name.removesuffix(final.name)) and lock.acquire(wait=False):
            remove(path)
            lock.release()


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there and as far as that is allowed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


if sys.platform == "win32":
    import msvcrt
    import time

    def _take(descriptor: int, wait: bool) -> bool:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(0.05)
            else:
                return True

else:
    import fcntl

    def _take(descriptor: int, wait: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: as if no other process were there
            return True
        return True
