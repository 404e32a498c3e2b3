"""Who carries out the jobs of long work, and how a job gets the arrays that it reads.

    engine.share("features", arrays)       ->  SharedArrays: a small handle that any job can open
    engine.map(partial(job, spec), items)  ->  the results, in the order of `items`

A job is a function of a module. Its spec is a small frozen dataclass of handles, options and a seed; it returns arrays
and changes nothing else. So threads, other processes and other machines run the same code and give the same bits.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from longtail.mapped_arrays import Arrays, file_of, map_arrays, store_arrays

T = TypeVar("T")
R = TypeVar("R")


class SharedArrays(Protocol):
    """Named arrays that jobs read, wherever they run."""

    def open(self) -> Arrays:
        """Return the arrays, which must not be changed."""


class Engine(Protocol):
    """Carries out jobs."""

    @property
    def n_threads(self) -> int:
        """Jobs that run at the same time, here or elsewhere."""

    @property
    def n_local_threads(self) -> int:
        """Threads of this process that a library may use inside of one call: torch, LightGBM, faiss."""

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield `function(item)` of each item, in order; only a bounded number of results wait to be taken."""

    def share(self, name: str, arrays: Arrays) -> SharedArrays:
        """Return a handle of the arrays, valid as long as they exist here; `name` is for people."""

    def plain(self) -> dict[str, Any]:
        """Return plain data of which `engine_of` makes the same engine in another process of this machine."""


@dataclass(frozen=True, eq=False)
class HeldArrays:
    """Arrays in the memory of this process, not copied."""

    arrays: Arrays

    def open(self) -> Arrays:
        """Return the arrays themselves."""
        return self.arrays


@dataclass(frozen=True)
class StoredArrays:
    """Arrays in a safetensors file that every process of an engine can read."""

    path: Path
    kept: Arrays | None = field(default=None, compare=False, repr=False)
    """In the process that shared them the arrays themselves, so that they outlive the handle; nowhere else."""

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredArrays, (self.path,)

    def open(self) -> Arrays:
        """Return the arrays, mapped into memory; a process maps a file once."""
        return _mapped(self.path, self.path.stat().st_mtime_ns)


@lru_cache(maxsize=16)  # a file that was removed takes up room on the disk while it is mapped
def _mapped(path: Path, changed_ns: int) -> Arrays:
    return map_arrays(path)


class ArrayStore:
    """Files of shared arrays in a folder, for engines whose jobs run in other processes.

    The same arrays are written once, arrays that are mapped from a file of ours are not written at all, and a file is
    removed when its arrays are freed here.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._paths: dict[tuple[tuple[str, int], ...], Path] = {}
        self._numbers = count()

    def share(self, name: str, arrays: Arrays) -> StoredArrays:
        """Return a handle of the arrays."""
        file = file_of(arrays)
        if file is not None:
            return StoredArrays(file)
        key = tuple((part, id(array)) for part, array in arrays.items())
        if key not in self._paths:
            path = self.folder / f"{next(self._numbers)}-{name}.safetensors"
            store_arrays(path, arrays)
            self._paths[key] = path
            for array in arrays.values():
                weakref.finalize(array, self._drop, key)
        return StoredArrays(self._paths[key], arrays)

    def _drop(self, key: tuple[tuple[str, int], ...]) -> None:
        path = self._paths.pop(key, None)
        if path is not None:
            path.unlink(missing_ok=True)
