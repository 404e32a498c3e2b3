"""Threads of this process: enough for us, because kernels release the interpreter lock."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

from longtail.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")


class LocalEngine:
    """Maps a function over items with `n_threads` threads; results come in the order of the items."""

    def __init__(self, n_threads: int | None = None) -> None:
        if n_threads is not None and n_threads < 1:
            raise ConfigError(f"threads must be at least 1, got {n_threads}")
        self.n_threads = n_threads or available_cores()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Like `map`, in parallel; at most two results a thread wait to be taken, so memory stays bounded."""
        if self.n_threads == 1:
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


class PerThread(threading.local, Generic[R]):
    """One value a thread, made on first use: scratch space that kernels may overwrite."""

    def __init__(self, make: Callable[[], R]) -> None:
        self.value = make()


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
