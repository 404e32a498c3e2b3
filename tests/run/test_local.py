from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from longtail.errors import ConfigError
from longtail.run.local import LocalEngine, Scratch, available_cores


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 3, 40])
def test_results_come_in_the_order_of_the_items(n_threads: int, n_items: int) -> None:
    def slow_at_first(item: int) -> int:
        time.sleep(0.002 if item % 3 == 0 else 0)
        return item * item

    assert list(LocalEngine(n_threads).map(slow_at_first, range(n_items))) == [i * i for i in range(n_items)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_reaches_the_caller_and_ends_the_work(n_threads: int) -> None:
    done, before = [], set(threading.enumerate())

    def fail(item: int) -> int:
        done.append(item)
        if item == 3:
            raise RuntimeError("item 3")
        return item

    with pytest.raises(RuntimeError, match="item 3"):
        list(LocalEngine(n_threads).map(fail, range(1000)))
    assert len(done) < 20
    assert set(threading.enumerate()) <= before


def test_items_are_asked_for_only_as_results_are_taken() -> None:
    asked, before = [], set(threading.enumerate())

    def items() -> Iterator[int]:
        for item in range(1000):
            asked.append(item)
            yield item

    results = LocalEngine(2).map(str, items())
    for _ in range(10):
        next(results)
    assert len(asked) <= 10 + 2 * 2 + 1
    results.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= before


def test_each_thread_has_scratch_of_its_own() -> None:
    scratch = Scratch(np.int64, -1)
    together = threading.Barrier(2)

    def use(item: int) -> bool:
        buffer = scratch.take(3)
        assert buffer.tolist() == [-1, -1, -1]
        buffer[:] = threading.get_ident()
        together.wait(5)
        return bool((scratch.take(2) == threading.get_ident()).all())

    assert all(LocalEngine(2).map(use, range(2)))
    assert scratch.take(5).tolist() == [-1] * 5


def test_the_number_of_threads_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="threads must be a whole number of at least 1, got 0"):
        LocalEngine(0)
    assert LocalEngine().n_threads == available_cores() >= 1
