from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numba
import numpy as np
from numba.core import event

from longtail.kernels.native.jit import kernel, loose_kernel
from longtail.run.compiling import on_compile


def test_compiling_is_announced_once_and_later_calls_are_silent() -> None:
    heard: list[str] = []
    before = {kind: list(listeners) for kind, listeners in event._registered.items()}

    inner = numba.njit(plus_one)

    @numba.njit
    def outer(x):  # type: ignore[no-untyped-def]
        return inner(x) * 2

    on_compile(lambda: heard.append("start"), lambda: heard.append("end"))
    try:
        assert outer(1) == 4
        assert outer(2) == 6
    finally:
        event._registered.clear()
        event._registered.update(before)
    assert heard == ["start", "end"]


COMPILE = """
import numpy as np
from longtail.run.compiling import on_compile
on_compile(lambda: print("start"), lambda: print("end"))
from longtail.kernels.native.solver import shuffle
order = np.arange(5).astype(np.int32)
shuffle(order, np.uint64(1))
print(sorted(order.tolist()))
"""


def test_the_next_process_finds_a_kernel_compiled(tmp_path: Path) -> None:
    outputs = []
    for _ in range(2):
        ended = subprocess.run(
            [sys.executable, "-c", COMPILE],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        outputs.append(ended.stdout.split("\n")[:-1])
    assert outputs == [["start", "end", "[0, 1, 2, 3, 4]"], ["[0, 1, 2, 3, 4]"]]


def test_kernels_leave_the_interpreter_to_others() -> None:
    for compiled in (kernel(plus_one), loose_kernel(plus_one)):
        assert compiled.targetoptions["nogil"]  # type: ignore[attr-defined]


def plus_one(x):  # type: ignore[no-untyped-def]
    return x + 1


def test_infinities_and_nan_keep_their_meaning_in_loose_kernels() -> None:
    from longtail.kernels.native.clustering import assign_to_centres

    centres = np.full((1, 2, 16), -np.inf, np.float32)
    centres[0, :, 3] = 1
    nearest, similarity = np.zeros(1, np.int64), np.zeros(1, np.float32)
    rows = np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2, np.float32)
    assign_to_centres(*rows, centres, 16, nearest, similarity)
    assert nearest[0] == 3
    assert similarity[0] == 2


def test_kernels_of_two_threads_do_not_disturb_each_other() -> None:
    from longtail.kernels.native.solver import shuffle

    expected = np.arange(1000).astype(np.int32)
    shuffle(expected, np.uint64(1))
    found = [np.arange(1000).astype(np.int32) for _ in range(4)]
    threads = [threading.Thread(target=shuffle, args=(order, np.uint64(1))) for order in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for order in found:
        np.testing.assert_array_equal(order, expected)
