"""Names, texts and paths from files never move the cursor, retitle the window or hide what was said."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.cli.predict import show_suggestions
from longtail.cli.progress import Bars
from longtail.cli.screen import Screen
from longtail.cli.terminal import console, safe_streams, shown
from longtail.predictions import Suggestion
from longtail.tables import Table, json_text

EVIL = "\x1b[2Jcleared\x1b]0;title\x07\x9b31m\x7f\rover\b"
SAFE = "␛[2Jcleared␛]0;title␇�31m␡␍over␈"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set whose texts, labels and name are hostile."""
    rows = [{"text": f"word{n % 2} {EVIL}", "labels": [f"{EVIL}{n % 2}", "plain"]} for n in range(20)]
    path = tmp_path / f"{EVIL.replace('/', '')}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def controls(text: str) -> set[str]:
    """Return the control characters of a text, but for line ends and tabs."""
    return {c for c in text if c not in "\n\t" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)}


def test_control_characters_become_pictures_and_the_rest_stays() -> None:
    assert shown(EVIL) == SAFE
    assert shown("Ünï\tcode ␛\n日本") == "Ünï\tcode ␛\n日本"


def test_no_command_shows_control_characters_of_data(longtail: Callable[..., Any], data: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    commands: list[tuple[object, ...]] = [
        ("data", "check", data),
        ("data", "check", data, "--json"),
        ("train", data, "--out", model),
        ("info", model),
        ("predict", model, "--text", EVIL),
        ("predict", model, data, "--keep", "text"),
        ("evaluate", model, data, "--split", "train", "--report", tmp_path / "report"),
        ("data", "check", data, "--report", tmp_path / "report"),
        ("predict", model, f"{EVIL}.txt"),
        ("train", data, "--out", model, "--set", f"{EVIL}=1"),
        (f"{EVIL}",),
    ]
    for command in commands:
        ran = longtail(*command)
        assert not controls(ran.out + ran.err), command
        assert ran.out + ran.err, command
    for file in (tmp_path / "report").iterdir():
        assert not controls(file.read_text()), file.name


def test_json_says_the_same_without_control_characters() -> None:
    assert json.loads(json_text({"name": EVIL})) == {"name": EVIL}
    assert not controls(json_text([EVIL]))


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_drawn_on_a_terminal_has_its_own_escapes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, str] = {}
    for words in (EVIL, SAFE):
        screens = _Terminal(), _Terminal()
        monkeypatch.setattr(sys, "stdout", screens[0])
        monkeypatch.setattr(sys, "stderr", screens[1])
        monkeypatch.setenv("TERM", "xterm")
        with safe_streams():
            screen = Screen()
            show_suggestions(screen, words, [Suggestion(words, words, 0.5)])
            screen.table(Table([words, "n"], [[words, "1"]]), words)
            bars = Bars(console(stderr=True, width=100), line_after_s=0.0)
            with bars.step(words, 3, words) as advance:
                advance(1, words)
                print(words)
                sys.stderr.write(words + "\n")
        drawn[words] = screens[0].getvalue()
        assert "\x1b[" in drawn[words], "rich's own colours are kept"
        for text in (screen.getvalue() for screen in screens):
            assert "\x1b[2J" not in text
            assert "\x1b]" not in text
            assert not controls(text) - {"\x1b", "\r"}
    assert SAFE.split("␛")[1] in drawn[EVIL]


def test_names_are_no_markup(longtail: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "a[/b][link=x]"
    folder.mkdir(parents=True)
    rows = [{"text": f"word{n % 2}", "labels": [f"label{n % 2}"]} for n in range(20)]
    for name in ("train", "dev"):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert longtail("train", folder, "--out", tmp_path / "m").code == 0
    ran = longtail("evaluate", tmp_path / "m", folder, "--report", tmp_path / "r[/c]")
    assert ran.code == 0
    assert "b][link=x]" in ran.out
    assert "r[/c]" in ran.out
