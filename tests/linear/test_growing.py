from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from longtail.linear.growing import GrowingArrays

parts = st.lists(st.lists(st.integers(0, 70_000), max_size=20), min_size=1, max_size=12)


def narrow(numbers: list[int]) -> Any:
    return np.array(numbers, np.uint16 if max(numbers, default=0) < 65_536 else np.uint32)


@given(parts, st.floats(0.01, 1))
def test_the_whole_is_all_parts_one_after_the_other_in_the_widest_type(found: list[list[int]], first: float) -> None:
    growing = GrowingArrays()
    for number, numbers in enumerate(found):
        share = first + (1 - first) * (number + 1) / len(found)  # a guess may be wrong
        growing.append({"a": narrow(numbers), "b": np.ones((len(numbers)), np.float32)}, share)
    whole = growing.arrays()
    expected = np.concatenate([narrow(numbers) for numbers in found])
    np.testing.assert_array_equal(whole["a"], expected)
    assert whole["a"].dtype == expected.dtype
    assert len(whole["b"]) == len(expected)


def test_a_part_that_is_all_is_not_copied() -> None:
    growing, whole = GrowingArrays(), np.arange(5)
    growing.append({"a": whole}, 1.0)
    assert growing.arrays()["a"] is whole
