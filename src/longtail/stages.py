"""Stages of training that are kept on disk, so that a killed run goes on where it was.

    stages.arrays("tree", build)  ->  (arrays, True)   built now and kept
                                      (arrays, False)  found, memory-mapped

Each stage is a folder of `persist`, written whole or not at all. The work folder belongs to one key (data,
options, seed, version): a run with another key is refused, instead of mixing two models.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from longtail.errors import ConfigError, LongtailError, ModelFormatError
from longtail.persist import Folder, FolderWriter, write_folder
from longtail.processes import is_main_process

Arrays = Mapping[str, np.ndarray[Any, Any]]
T = TypeVar("T")
KIND = "stage"


class Stages(Protocol):
    """Where finished stages are kept."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """The result of stage `name`, and whether it had to be built."""

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """The same for a stage that is nothing but arrays."""

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """Keep a state of a stage that goes on; an older state is replaced in one step."""

    def get(self, name: str) -> Folder | None:
        """The last state that was put; None where there is none."""

    def within(self, prefix: str) -> Stages:
        """The same place, with names that begin with `prefix`."""


class NoStages:
    """Keeps nothing."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """See `Stages.keep`."""
        return build(), True

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """See `Stages.arrays`."""
        return build(), True

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """See `Stages.put`."""

    def get(self, name: str) -> Folder | None:
        """See `Stages.get`."""
        return None

    def within(self, prefix: str) -> Stages:
        """See `Stages.within`."""
        return self


NO_STAGES = NoStages()


class FolderStages:
    """Keeps stages in a work folder."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self.prefix = folder, prefix

    @classmethod
    def open(cls, folder: str | Path, key: Any, resume: bool) -> FolderStages:
        """Open the work folder of `key` (plain data); without `resume` whatever is there is cleared first.

        The main process does that for all; the others only look for states that it has put there.
        """
        folder = Path(folder)
        if not is_main_process():
            return FollowedStages(folder)
        name, wanted = folder / "key.json", json.dumps(key)
        try:
            found = _key_in(name) if resume else None
            if found is not None and found != json.loads(wanted):
                raise ConfigError(
                    f"{folder} was begun with other data or options; train without --resume to start anew"
                )
            if found is None:
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
        """See `Stages.keep`."""
        place = self.folder / f"{self.prefix}{name}"
        if place.is_dir():
            try:
                return read(Folder(place, KIND)), False
            except ModelFormatError:
                shutil.rmtree(place)  # damaged on disk: build it again
        built = build()
        with write_folder(place, KIND) as writer:
            write(writer, built)
        return built, True

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """See `Stages.arrays`."""
        return self.keep(
            name,
            build,
            lambda writer, arrays: writer.arrays("arrays", arrays),
            lambda folder: folder.arrays("arrays"),
        )

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """See `Stages.put`."""
        with write_folder(self.folder / f"{self.prefix}{name}", KIND) as writer:
            write(writer)

    def get(self, name: str) -> Folder | None:
        """See `Stages.get`; a state that is damaged on disk counts as none."""
        try:
            return Folder(self.folder / f"{self.prefix}{name}", KIND)
        except ModelFormatError:
            return None

    def within(self, prefix: str) -> FolderStages:
        """See `Stages.within`."""
        return type(self)(self.folder, f"{self.prefix}{prefix}-")

    def close(self) -> None:
        """Remove the folder: the model is saved."""
        shutil.rmtree(self.folder, ignore_errors=True)


class FollowedStages(FolderStages):
    """The work folder of the main process, seen by another one: stages are built again, nothing is written."""

    def keep(
        self, name: str, build: Callable[[], T], write: Callable[[FolderWriter, T], None], read: Callable[[Folder], T]
    ) -> tuple[T, bool]:
        """See `Stages.keep`; the main process may be writing this very stage."""
        return build(), True

    def put(self, name: str, write: Callable[[FolderWriter], None]) -> None:
        """See `Stages.put`: left to the main process."""

    def close(self) -> None:
        """Left to the main process."""


def _key_in(file: Path) -> Any:
    """The key of a work folder; None where there is none, or a kill has cut it off."""
    try:
        return json.loads(file.read_bytes()) if file.is_file() else None
    except ValueError:
        return None


def _clear(folder: Path) -> None:
    """Remove an older work folder, and nothing that is not one."""
    if not folder.exists():
        return
    if not (folder / "key.json").is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigError(f"{folder} exists and is not a work folder of longtail; choose another place")
    shutil.rmtree(folder)
