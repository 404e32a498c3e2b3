"""Amounts are read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.units import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("10m", 600),
        ("1h30m", 5400),
        ("2 h", 7200),
        ("1.5m", 90),
        ("45", 45),
        ("1h 5m 3s", 3903),
        ("5min", 300),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@given(st.text(max_size=12))
def test_anything_else_is_an_error(text: str) -> None:
    try:
        assert seconds_of(text) >= 0
    except ValueError as error:
        assert str(error).startswith("a time must be such as")
