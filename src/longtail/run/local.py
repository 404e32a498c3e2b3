"""Threads of this process: enough on one machine, because kernels release the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.mapped_arrays import Arrays
from longtail.run.engine import HeldArrays

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Carries out jobs with `n_threads` threads; by default as many as there are cores."""

    def __init__(self, n_threads: int | None = None) -> None:
        self.n_threads = self.n_local_threads = checked_threads(n_threads)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of each item, in order; at most two results per thread wait, so memory stays bounded.

        A single item of a list needs no thread.
        """
        if self.n_threads == 1 or (isinstance(items, Sized) and len(items) == 1):
            yield from map(function, items)
            return
        waiting: deque[Future[R]] = deque()
        pool = ThreadPoolExecutor(self.n_threads)
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > 2 * self.n_threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def share(self, name: str, arrays: Arrays) -> HeldArrays:
        """Return a handle that holds the arrays themselves."""
        return HeldArrays(arrays)

    def plain(self) -> dict[str, Any]:
        """Return plain data of which `engine_of` makes the same engine."""
        return {"kind": "local", "threads": self.n_threads}


class Scratch(threading.local):
    """A buffer per thread that kernels may overwrite. It grows as needed and is freed with its thread."""

    def __init__(self, dtype: type[np.generic], fill: int) -> None:
        self._buffer: NDArray[Any] = np.empty(0, dtype)
        self._fill = fill

    def take(self, n: int) -> NDArray[Any]:
        """Return the first `n` places; new ones hold `fill`, others what the last user left there."""
        if len(self._buffer) < n:
            self._buffer = np.full(n, self._fill, self._buffer.dtype)
        return self._buffer[:n]


def checked_threads(n_threads: int | None) -> int:
    """Return a number of threads, by default that of the cores; raise if there cannot be so many."""
    if n_threads is not None and (not isinstance(n_threads, Integral) or n_threads < 1):
        raise ConfigError(f"threads must be a whole number of at least 1, got {n_threads!r}")
    return n_threads or available_cores()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
