"""Memory that was taken."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from longtail.run.resources import peak_memory_bytes


def test_the_peak_of_memory_is_kept_after_it_was_given_back() -> None:
    before = peak_memory_bytes()
    if before is None:
        pytest.skip("this system does not tell")
    held = np.ones(50_000_000, np.uint8)
    held = held[:1].copy()
    assert peak_memory_bytes() >= before
    assert peak_memory_bytes() > 50_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the peak of the parent may count")
def test_a_new_process_begins_anew() -> None:
    held = np.ones(300_000_000, np.uint8)
    code = "from longtail.run.resources import peak_memory_bytes; print(peak_memory_bytes())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(told) < len(held)
