"""Stages of training that are kept on disk, so that a killed run continues where it was.

    stages.arrays("tree", build)  ->  (arrays, True)   built now and kept
                                      (arrays, False)  from disk, memory-mapped

Each stage is a folder of `persist`, written whole or not at all. The work folder belongs to one key (data,
options, seed, version): a run with another key is refused, instead of mixing two models. So is one that begins while
another process uses the folder (`claimed`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longtail.errors import ConfigError, LongtailError, ModelFormatError
from longtail.files import FileLock, link_target, remove
from longtail.mapped_arrays import Arrays
from longtail.persist import Folder, FolderWriter, write_folder
from longtail.run.log import LOG
from longtail.run.processes import is_main_process

T = TypeVar("T")
KIND = "stage"
_KEY = "key.json"


class Stages(Protocol):
    """Where finished stages are kept."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """Return the result of stage `name`, and whether it had to be built."""

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """Return the arrays of stage `name`, and whether they had to be built."""

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Keep the state of a stage that is not finished; an older state is replaced in one step."""

    def get(self, name: str) -> Folder | None:
        """Return the last state that was put, or None."""

    def put_part(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Keep what this process alone has of a state, if several train together; `name` must say which part it is."""

    def drop_parts(self, name: str, but: str) -> None:
        """Forget the parts whose names are `name`, a hyphen and more, but those that begin with `but`."""

    @property
    def shared_folder(self) -> Path | None:
        """Return the folder that all processes of a training see; None if nothing is kept."""

    def within(self, prefix: str) -> Stages:
        """Return the same place, with names that begin with `prefix`."""


class NoStages:
    """Keeps nothing."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """Build the stage."""
        return build(), True

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """Build the arrays."""
        return build(), True

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Do nothing."""

    def get(self, name: str) -> Folder | None:
        """Return None."""
        return None

    def put_part(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Do nothing."""

    def drop_parts(self, name: str, but: str) -> None:
        """Do nothing."""

    @property
    def shared_folder(self) -> Path | None:
        """Return None."""
        return None

    def within(self, prefix: str) -> Stages:
        """Return itself."""
        return self


NO_STAGES = NoStages()


class FolderStages:
    """Keeps stages in a work folder."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self.prefix = folder, prefix

    @classmethod
    def open(cls, folder: str | Path, key: Any, resume: bool) -> FolderStages:
        """Open the work folder of `key` (plain data); without `resume`, an older one is cleared first.

        The main process does that for all; the others only read states that it has put there.
        """
        folder = Path(folder)
        if not is_main_process():
            return FollowedStages(folder)
        name, wanted = folder / _KEY, json.dumps(key)
        try:
            older = _key_in(name) if resume else None
            if older is not None and older != json.loads(wanted):
                raise ConfigError(
                    f"{folder} was begun with other data or options; train without `resume` to start anew"
                )
            if older is None:
                if name.exists() and not resume:
                    LOG.info(f"{folder} of an unfinished run is cleared; `resume` would have gone on with it")
                _clear(folder)
                folder.mkdir(parents=True)
                name.write_text(wanted)
        except OSError as error:
            reason = error.strerror or str(error)
            raise LongtailError(f"cannot use the work folder {folder}: {reason}; choose another place") from error
        return cls(folder)

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """Return the stage from its folder, or build and write it."""
        place = self.folder / f"{self.prefix}{name}"
        if place.is_dir():
            try:
                return read(Folder(place, KIND)), False
            except ModelFormatError:
                remove(place)  # damaged on disk: build it again
        built = build()
        with write_folder(place, KIND) as writer:
            write(writer, built)
        return built, True

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """Return the arrays from their folder, memory-mapped, or build and write them."""
        return self.keep(
            name,
            build,
            lambda writer, arrays: writer.arrays("arrays", arrays),
            lambda folder: folder.arrays("arrays"),
        )

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Write the state of an unfinished stage."""
        with write_folder(self.folder / f"{self.prefix}{name}", KIND) as writer:
            write(writer)

    def get(self, name: str) -> Folder | None:
        """Return the last state, or None if there is none or it is damaged on disk."""
        try:
            return Folder(self.folder / f"{self.prefix}{name}", KIND)
        except ModelFormatError:
            return None

    def put_part(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Write what this process alone has of a state."""
        FolderStages.put(self, name, write)

    def drop_parts(self, name: str, but: str) -> None:
        """Remove older parts."""
        for part in self.folder.glob(f"{self.prefix}{name}-*"):
            if part.is_dir() and not part.name.startswith(f"{self.prefix}{but}"):
                remove(part)

    @property
    def shared_folder(self) -> Path | None:
        """Return the work folder."""
        return self.folder

    def within(self, prefix: str) -> FolderStages:
        """Return stages of the same folder whose names begin with `prefix`."""
        return type(self)(self.folder, f"{self.prefix}{prefix}-")

    def close(self) -> None:
        """Remove the folder, because the model is saved; not if another process has claimed it meanwhile."""
        with suppress(LongtailError, OSError), claimed(self.folder):
            _remove(self.folder)


class FollowedStages(FolderStages):
    """The work folder of the main process as the others use it: stages are built again, only own parts are written."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """Build the stage, which the main process may be writing just now."""
        return build(), True

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Leave that to the main process."""

    def drop_parts(self, name: str, but: str) -> None:
        """Leave that to the main process."""

    def close(self) -> None:
        """Leave that to the main process."""


@contextmanager
def claimed(folder: str | Path | None) -> Iterator[None]:
    """Keep other processes from using a work folder, if there is one, meanwhile; raise if one does so now.

    The main process does that for all of a training.
    """
    if folder is None or not is_main_process():
        yield
        return
    folder = link_target(Path(folder))
    lock = FileLock(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        free = lock.acquire(wait=False)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LongtailError(f"cannot use the work folder {folder}: {reason}; choose another place") from error
    if not free:
        raise LongtailError(f"{folder} is in use by another training; wait until that ends, or choose another place")
    try:
        yield
    finally:
        lock.release()


def _key_in(file: Path) -> Any:
    """Return the key of a work folder, or None if there is none or it is cut off."""
    try:
        return json.loads(file.read_bytes()) if file.is_file() else None
    except ValueError:
        return None


def _clear(folder: Path) -> None:
    """Remove an older work folder, and nothing that is not one."""
    if not folder.exists():
        return
    if not (folder / _KEY).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not a work folder of longtail; choose another place")
    _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a work folder, its key last: what a kill leaves is a work folder still."""
    for stage in folder.iterdir():
        if stage.name != _KEY:
            remove(stage)
    (folder / _KEY).unlink(missing_ok=True)
    folder.rmdir()
