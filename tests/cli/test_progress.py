"""Bars on a terminal."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from longtail.cli import progress
from longtail.cli.progress import Bars

Run = Callable[..., Any]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def terminal() -> tuple[Bars, io.StringIO]:
    screen = io.StringIO()
    return Bars(Console(file=screen, force_terminal=True, width=100)), screen


def test_a_step_shows_what_is_done_of_how_many_and_how_fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "WORTH_A_LINE_S", 0.0)
    bars, screen = terminal()
    with bars.step("weights", 200, "labels") as advance:
        advance(50)
        advance(100)
        bars._live.refresh()
    shown = screen.getvalue()
    assert "weights" in shown
    assert "150 of 200 labels" in shown
    assert "/s" in shown
    last = shown.splitlines()[-1]
    assert "150 labels" in last
    assert not bars._live.live.is_started


def test_steps_may_stand_in_one_another_and_fail() -> None:
    bars, _ = terminal()
    with pytest.raises(ValueError, match="inner"), bars.step("outer", 2), bars.step("inner"):
        assert bars._live.live.is_started
        raise ValueError("inner")
    assert not bars._live.live.is_started
    assert bars._live.tasks == []


def test_compiling_is_shown() -> None:
    bars, screen = terminal()
    bars._compile()
    bars._live.refresh()
    bars._compiled()
    assert progress.COMPILING in screen.getvalue()
    assert not bars._live.live.is_started


def test_bars_are_drawn_on_a_terminal_only_and_not_when_quiet(
    longtail: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "WORTH_A_LINE_S", 0.0)
    screen = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", screen)
        longtail("train", data, "--out", tmp_path / "m")
    assert "label weights" in screen.getvalue()
    screen = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr("sys.stderr", screen)
        longtail("train", data, "--out", tmp_path / "m", "--quiet")
    assert screen.getvalue() == ""
    assert "label weights" not in longtail("train", data, "--out", tmp_path / "m").err
