"""`longtail serve` refuses what it cannot serve, in one line."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from longtail.cli.main import main

pytest.importorskip("uvicorn")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere is not a longtail model: it has no manifest.json"),
        (["nowhere", "--workers", "2"], "nowhere is not a longtail model"),
        (["a", "b/a"], "models must have different names, got 'a' twice; write NAME=FOLDER"),
        (["my name=a"], "a model's name must be letters, digits"),
        (["a", "--workers", "0"], "--workers must be at least 1, got 0"),
        (["a", "--port", "70000"], "--port must be from 0 to 65,535, got 70000"),
        (["a", "--tokens", "none"], "--tokens must be a file of roles, names and tokens; none cannot be read"),
        (["a", "--set", "max_text=3"], "did you mean 'max_texts'?"),
        (["a", "--set", "max_texts=0"], "max_texts"),
        (["a", "--host", "256.1.1.1"], "cannot listen at 256.1.1.1, port 0"),
    ],
)
def test_what_cannot_be_served_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    port = [] if "--port" in arguments else ["--port", "0"]
    assert main(["serve", *arguments, *port]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert said in line


def test_a_port_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["serve", "a", "--port", str(taken.getsockname()[1])]) == 2
    assert "choose another --host or --port" in capsys.readouterr().err
