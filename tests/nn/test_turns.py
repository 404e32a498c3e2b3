"""One thread at a time computes with torch, with the number of threads that its engine has."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import torch

from longtail.nn.turns import in_turn
from longtail.run.local import LocalEngine


def test_a_thread_waits_until_no_other_computes() -> None:
    inside, leave, order = threading.Event(), threading.Event(), []

    def first() -> None:
        with in_turn(LocalEngine(1)):
            inside.set()
            assert leave.wait(30)
            order.append("first")

    def second() -> None:
        with in_turn(LocalEngine(2)):
            order.append("second")

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(first)
        assert inside.wait(30)
        two = pool.submit(second)
        assert not two.done()
        leave.set()
        one.result(), two.result()
    assert order == ["first", "second"]


def test_each_computes_with_its_own_number_of_threads() -> None:
    torch.set_num_threads(2)
    with in_turn(LocalEngine(1)):
        assert torch.get_num_threads() == 1
        with in_turn(LocalEngine(3)):  # of the same thread
            assert torch.get_num_threads() == 3
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
