from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.nn.training.schedules import ScheduleOptions, factor

KINDS = ["linear", "cosine", "constant", "triangular", "plateau"]


def values(n_steps: int, drops: int = 0, **options: Any) -> list[float]:
    return [factor(ScheduleOptions(**options), step, n_steps, drops) for step in range(n_steps)]


def test_without_a_warm_up_the_line_begins_at_the_full_rate_and_ends_at_nothing() -> None:
    options = ScheduleOptions(kind="linear", warmup=0.0)
    assert factor(options, 0, 10) == 1
    assert factor(options, 5, 10) == pytest.approx(0.5)
    assert factor(options, 10, 10) == 0


def test_a_warm_up_rises_in_a_line_to_the_full_rate() -> None:
    found = values(20, kind="linear", warmup=0.2)
    assert found[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert found[4:] == pytest.approx([1 - step / 16 for step in range(16)])


def test_a_cosine_is_at_half_the_rate_half_way() -> None:
    found = values(11, kind="cosine", warmup=0.0)
    assert found[0] == 1
    assert factor(ScheduleOptions(kind="cosine", warmup=0.0), 5, 10) == pytest.approx(0.5)
    assert found[3] == pytest.approx((1 + math.cos(math.pi * 3 / 11)) / 2)


def test_slanted_triangles_go_from_a_32nd_up_and_back() -> None:
    options = ScheduleOptions(kind="triangular", warmup=0.1)
    assert factor(options, 0, 100) == pytest.approx(1 / 32)
    assert factor(options, 10, 100) == 1
    assert factor(options, 5, 100) == pytest.approx((1 + 0.5 * 31) / 32)
    assert factor(options, 55, 100) == pytest.approx((1 + 0.5 * 31) / 32)
    assert factor(options, 100, 100) == pytest.approx(1 / 32)


def test_plateaus_divide_the_rate_down_to_a_floor() -> None:
    shape: dict[str, Any] = {"kind": "plateau", "warmup": 0.0, "plateau_factor": 0.1, "plateau_floor": 0.005}
    assert [values(3, drops, **shape)[1] for drops in range(4)] == pytest.approx([1, 0.1, 0.01, 0.005])


def test_a_constant_rate_is_constant_after_the_warm_up() -> None:
    assert values(8, kind="constant", warmup=0.25) == pytest.approx([1 / 3, 2 / 3, 1, 1, 1, 1, 1, 1])


@given(st.sampled_from(KINDS), st.integers(1, 60), st.floats(0, 0.9), st.integers(0, 5))
def test_rates_are_never_above_the_full_one_and_fall_after_the_warm_up(
    kind: str, n_steps: int, warmup: float, drops: int
) -> None:
    found = values(n_steps, drops, kind=kind, warmup=warmup)
    assert all(0 < value <= 1 for value in found)
    after = found[math.ceil(warmup * n_steps) :]
    assert all(one >= two for one, two in pairwise(after))
    assert all(one <= two + 1e-9 for one, two in pairwise(found[: math.ceil(warmup * n_steps)]))
