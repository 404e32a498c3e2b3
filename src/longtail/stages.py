"""Stages of training that are kept on disk, so that a killed run goes on where it was.

    stages.arrays("tree", build)  ->  (arrays, True)   built now and kept
                                      (arrays, False)  found, memory-mapped

Each stage is written whole or not at all. The folder belongs to one key (data, options, seed, version):
a run with another key finds it strange, and says so, instead of mixing two models.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from longtail.errors import ConfigError, LongtailError, ModelFormatError
from longtail.persist import map_arrays, store_arrays

Arrays = Mapping[str, np.ndarray[Any, Any]]


class Stages(Protocol):
    """Where finished stages are kept."""

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """The arrays of stage `name`, and whether they had to be built."""

    def within(self, prefix: str) -> Stages:
        """The same place, with names that begin with `prefix`."""


class NoStages:
    """Keeps nothing."""

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """See `Stages.arrays`."""
        return build(), True

    def within(self, prefix: str) -> Stages:
        """See `Stages.within`."""
        return self


NO_STAGES = NoStages()


class FolderStages:
    """Keeps stages as files of a work folder."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        self.folder, self.prefix = folder, prefix

    @classmethod
    def open(cls, folder: str | Path, key: str, resume: bool) -> FolderStages:
        """Open the work folder of `key`; without `resume` whatever is there is cleared first."""
        folder = Path(folder)
        name = folder / "key.json"
        try:
            if resume and name.is_file() and json.loads(name.read_bytes()) != key:
                raise ConfigError(
                    f"{folder} was begun with other data or options; train without --resume to start anew"
                )
            if not resume or not name.is_file():
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir(parents=True)
                name.write_text(json.dumps(key))
        except (OSError, ValueError) as error:
            if isinstance(error, LongtailError):
                raise
            raise LongtailError(f"cannot use the work folder {folder}: {error}; choose another place") from error
        return cls(folder)

    def arrays(self, name: str, build: Callable[[], Arrays]) -> tuple[Arrays, bool]:
        """See `Stages.arrays`."""
        file = self.folder / f"{self.prefix}{name}.safetensors"
        if file.is_file():
            try:
                return map_arrays(file), False
            except ModelFormatError:
                file.unlink()  # cut off by a full disk: build it again
        built = build()
        half = file.with_suffix(".half")
        try:
            store_arrays(half, built)
            half.replace(file)
        except OSError as error:
            half.unlink(missing_ok=True)
            raise LongtailError(
                f"cannot write {file}: {error.strerror}; free some space and go on with --resume"
            ) from error
        return built, True

    def within(self, prefix: str) -> FolderStages:
        """See `Stages.within`."""
        return FolderStages(self.folder, f"{self.prefix}{prefix}-")

    def close(self) -> None:
        """Remove the folder: the model is saved."""
        shutil.rmtree(self.folder, ignore_errors=True)
