"""Streams that are closed, full or read by nobody, and Ctrl-C before there is a command: one line, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.cli.main import main

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the shell and the devices are those of POSIX")

FULL = Path("/dev/full")


def in_shell(redirected: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the program with what a shell makes of the streams: `in_shell(">&-", "methods")`."""
    script = f'exec "$0" -m longtail "$@" {redirected}'
    command = ["sh", "-c", script, sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables}, timeout=120)


@pytest.mark.skipif(not FULL.exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    "command",
    [
        ["predict", "MODEL", "--text", "x"],
        ["predict", "MODEL", "--text", "x", "--json"],
        ["info", "MODEL"],
        ["info", "MODEL", "--json"],
        ["evaluate", "MODEL", "DATA", "-q"],
        ["evaluate", "MODEL", "DATA", "-q", "--json"],
        ["methods"],
        ["methods", "--json"],
        ["--help"],
        ["--version"],
    ],
)
def test_a_full_standard_output_is_one_line(
    model: Path, data: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [{"MODEL": str(model), "DATA": str(data)}.get(word, word) for word in command]
    monkeypatch.setattr(sys, "stdout", FULL.open("w"))
    assert main(arguments) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("longtail: ")]
    assert errors == ["longtail: cannot use standard output: No space left on device"]


def test_a_closed_standard_output_is_one_line(model: Path) -> None:
    ran = in_shell(">&-", "predict", model, "--text", "x", "--json", "-q")
    assert (ran.returncode, ran.stderr) == (2, "longtail: cannot use standard output: Bad file descriptor\n")
    ran = in_shell(">&-", "info", model)  # on a busy machine, lines before say how long it has taken so far
    assert (ran.returncode, ran.stderr.splitlines()[-1]) == (
        2,
        "longtail: cannot use standard output: Bad file descriptor",
    )


def test_a_process_ends_with_one_line_when_standard_output_is_full() -> None:
    if not FULL.exists():
        pytest.skip("this system has no device that is always full")
    ran = in_shell(">/dev/full", "--version")
    assert (ran.returncode, ran.stderr) == (2, "longtail: cannot use standard output: No space left on device\n")


def test_a_closed_standard_input_is_empty_and_a_closed_standard_error_is_not_needed(model: Path) -> None:
    ran = in_shell("<&-", "predict", model, "-q")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == "longtail: standard input must hold at least one text, it is empty\n"
    ran = in_shell("2>&-", "predict", model, "--text", "x")
    assert ran.returncode == 0
    assert ran.stdout.startswith('{"labels"')


def test_a_reader_that_has_gone_is_no_error(model: Path, tmp_path: Path) -> None:
    texts = tmp_path / "t.txt"
    texts.write_text("word1a\n" * 5000)
    ran = in_shell("| true", "predict", model, texts, "-q")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


def test_what_standard_output_cannot_encode_is_shown_as_escapes(model: Path) -> None:
    ran = in_shell("", "info", model, PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert "\\u2588" in ran.stdout


def test_ctrl_c_while_python_imports_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "longtail", "methods"]
    options: dict[str, Any] = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.default_int_handler)}
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=120, **options
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "longtail: interrupted\n")


def test_ctrl_c_in_a_command_ends_with_130(longtail: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        def isatty(self) -> bool:
            raise KeyboardInterrupt

        def write(self, text: str) -> int:
            raise KeyboardInterrupt

        def flush(self) -> None:
            pass

    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", Interrupting())
        ran = longtail("methods")
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "longtail: interrupted"
