"""Bars on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from longtail.cli.progress import Bars
from longtail.run.progress import COMPILING

Run = Callable[..., Any]


def terminal() -> tuple[Bars, io.StringIO]:
    screen = io.StringIO()
    return Bars(Console(file=screen, force_terminal=True, width=100), line_after_s=0.0), screen


def test_a_step_shows_what_is_done_of_how_many_and_how_fast() -> None:
    bars, screen = terminal()
    with bars.step("weights", 200, "labels") as advance:
        advance(50)
        advance(100)
    shown = screen.getvalue()
    assert "weights" in shown
    assert "150 of 200 labels" in shown
    assert "/s" in shown
    last = shown.splitlines()[-1]
    assert "150 labels" in last
    assert not bars.live.live.is_started


def test_steps_may_stand_in_one_another_and_fail() -> None:
    bars, _ = terminal()
    with pytest.raises(ValueError, match="inner"), bars.step("outer", 2), bars.step("inner"):
        assert bars.live.live.is_started
        raise ValueError("inner")
    assert not bars.live.live.is_started
    assert bars.live.tasks == []


def test_compiling_is_shown() -> None:
    bars, screen = terminal()
    bars.begin_compiling()
    bars.end_compiling()
    assert COMPILING in screen.getvalue()
    assert not bars.live.live.is_started


def test_bars_are_drawn_on_a_terminal_only_and_not_when_quiet(
    longtail: Run, on_terminal: Callable[..., str], data: Path, tmp_path: Path
) -> None:
    assert "label weights" in on_terminal("train", data, "--out", tmp_path / "m")
    assert on_terminal("train", data, "--out", tmp_path / "m", "--quiet") == ""
    assert "label weights" not in longtail("train", data, "--out", tmp_path / "m").err
