from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from longtail.engines.local import LocalEngine, PerThread, available_cores
from longtail.errors import ConfigError


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_items", [0, 1, 3, 40])
def test_results_come_in_the_order_of_the_items(n_threads: int, n_items: int) -> None:
    def slow_at_first(item: int) -> int:
        time.sleep(0.002 if item % 3 == 0 else 0)
        return item * item

    assert list(LocalEngine(n_threads).map(slow_at_first, range(n_items))) == [i * i for i in range(n_items)]


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_error_reaches_the_caller_and_ends_the_work(n_threads: int) -> None:
    done = []

    def fail(item: int) -> int:
        done.append(item)
        if item == 3:
            raise RuntimeError("item 3")
        return item

    with pytest.raises(RuntimeError, match="item 3"):
        list(LocalEngine(n_threads).map(fail, range(1000)))
    assert len(done) < 20
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]


def test_items_are_asked_for_only_as_results_are_taken() -> None:
    asked = []

    def items() -> Iterator[int]:
        for item in range(1000):
            asked.append(item)
            yield item

    results = LocalEngine(2).map(str, items())
    for _ in range(10):
        next(results)
    assert len(asked) <= 10 + 2 * 2 + 1
    results.close()  # type: ignore[attr-defined]
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]


def test_each_thread_has_scratch_of_its_own() -> None:
    made = []
    scratch = PerThread(lambda: made.append(threading.get_ident()) or [threading.get_ident()])  # type: ignore[func-returns-value]
    together = threading.Barrier(2)

    def use(item: int) -> bool:
        together.wait(5)
        return scratch.value[0] == threading.get_ident()

    assert all(LocalEngine(2).map(use, range(2)))
    assert len(set(made)) == len(made) == 3  # two workers, and this thread


def test_the_number_of_threads_must_be_positive() -> None:
    with pytest.raises(ConfigError, match="threads must be at least 1, got 0"):
        LocalEngine(0)
    assert LocalEngine().n_threads == available_cores() >= 1
