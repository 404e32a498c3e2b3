"""Bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from longtail.cli.lines import PlainLines
from longtail.cli.main import main
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


def shown_after(drawn: str) -> list[str]:
    """Return the lines that a terminal shows after `drawn` was written to it."""
    lines, row, column = [""], 0, 0
    for word in re.findall(r"\x1b\[[\d;?]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+", drawn):
        if word == "\r":
            column = 0
        elif word == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif word.endswith("A") and word[0] == "\x1b":
            row -= int(word[2:-1] or 1)
        elif word == "\x1b[2K":
            lines[row] = ""
        elif word[0] != "\x1b":
            lines[row] = lines[row][:column].ljust(column) + word + lines[row][column + len(word) :]
            column += len(word)
    return [line.rstrip() for line in lines]


def test_notes_come_above_live_bars(data: Path, tmp_path: Path) -> None:
    pty = pytest.importorskip("pty")
    watched, terminal = pty.openpty()
    job = f"""
from longtail.cli.main import main
raise SystemExit(main(["compare", {str(data)!r}, "--methods", "knn,other=knn", "--out", {str(tmp_path / "out")!r}]))
"""
    process = subprocess.Popen([sys.executable, "-c", job], stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    drawn = b""
    with suppress(OSError):  # the terminal is gone with the process
        while chunk := os.read(watched, 1 << 16):
            drawn += chunk
    os.close(watched)
    assert process.wait() == 0
    assert "━" in drawn.decode()
    lines = shown_after(drawn.decode())
    assert {"1 of 2: knn", "2 of 2: other, done before"} <= set(lines)
    assert not [line for line in lines if "━" in line]


class Terminal(io.TextIOWrapper):
    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", write_through=True)

    def isatty(self) -> bool:
        return True

    def getvalue(self) -> str:
        return cast(io.BytesIO, self.buffer).getvalue().decode()


def test_answers_on_a_terminal_are_not_written_over_a_bar(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", terminal)
        patched.setattr(sys, "stderr", terminal)
        assert main(["predict", str(model), "-t", "word1a word1b", "--json"]) == 0
    [answer] = [line for line in shown_after(terminal.getvalue()) if "labels" in line]
    assert json.loads(answer)["labels"]


def test_a_step_that_takes_long_says_in_plain_lines_how_far_it_is() -> None:
    written: list[str] = []
    heard = threading.Event()

    def write(line: str) -> None:
        written.append(line)
        heard.set()

    def wait() -> None:
        heard.clear()
        assert heard.wait(20)

    lines = PlainLines(write, long_s=0.02, pause_s=0.01)
    with lines.command("train"):
        wait()
        with lines.step("label weights", 200, "labels") as advance:
            advance(50, "loss 0.5")
            wait()
            wait()
            advance(150)
    assert written[0].startswith("train: ")
    assert written[0].endswith(" s so far")
    assert re.fullmatch(r"label weights: 25%, 50 of 200 labels, [\d,]+/s, loss 0.5, about \d+\.\d s left", written[-2])
    assert re.fullmatch(r"label weights: 200 labels in \d+\.\d s", written[-1])
    n_written = len(written)
    with lines.step("short"):
        pass
    assert len(written) == n_written


def test_a_command_in_a_pipe_says_that_it_is_at_work(data: Path, tmp_path: Path) -> None:
    job = f"""
from longtail.cli.lines import LINES
from longtail.cli.main import main
LINES.long_s = LINES.pause_s = 0.05
main(["train", {str(data)!r}, "--out", {str(tmp_path / "m")!r}])
"""
    ran = subprocess.run([sys.executable, "-c", job], capture_output=True, text=True, check=True)
    assert re.search(r"^(train|load the method): .*\d s so far$", ran.stderr, flags=re.MULTILINE)
    assert "\x1b" not in ran.stderr
