"""Ctrl-C, SIGKILL and a full disk: the program is a process of its own here."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from longtail.methods import load_model

pytestmark = pytest.mark.slow

resource = pytest.importorskip("resource", reason="limits are those of POSIX")

Run = Callable[..., Any]

PROGRAM = [sys.executable, "-m", "longtail.cli.main"]
PATIENCE_S = 60


@contextmanager
def started(*arguments: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A program that can be interrupted, also where the tests run in the background, where shells ignore that."""
    command = [*PROGRAM, *map(str, arguments)]
    if os.name == "posix":
        options.setdefault("preexec_fn", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    """Until the running program has made `path`."""
    end = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < end, f"{path} was never made"
        time.sleep(0.002)


def test_ctrl_c_ends_with_130_and_one_line_and_leaves_no_half_model(tmp_path: Path) -> None:
    out = tmp_path / "m"
    with started("train", "debtags-sample", "--out", out, "--set", "n_seeds=50") as process:
        wait_for(tmp_path / "m.work" / "member-0-tree" / "manifest.json", process)
        process.send_signal(signal.SIGINT)
        printed, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert printed == ""
    assert "Traceback" not in told
    assert "--resume goes on" in told
    assert told.splitlines()[-1] == "longtail: interrupted"
    assert not out.exists()


@pytest.mark.parametrize("stage", ["features", "member-1-tree", "member-2-label-weights-0"])
def test_a_killed_run_goes_on_and_ends_with_the_same_model(longtail: Run, tmp_path: Path, stage: str) -> None:
    command = ["train", "debtags-sample", "--set", "n_seeds=3", "--quiet", "--out"]
    with started(*command, tmp_path / "m") as process:
        wait_for(tmp_path / "m.work" / stage / "manifest.json", process)
        process.kill()
        process.wait()
    assert not (tmp_path / "m" / "manifest.json").exists()
    assert longtail(*command, tmp_path / "m", "--resume").code == 0
    assert longtail(*command, tmp_path / "whole").code == 0
    resumed, whole = (tmp_path / name / "manifest.json" for name in ("m", "whole"))
    assert resumed.read_bytes() == whole.read_bytes()
    assert not (tmp_path / "m.work").exists()


def test_a_full_disk_gives_one_line_and_leaves_the_older_model(longtail: Run, data: Path, tmp_path: Path) -> None:
    assert longtail("train", data, "--out", tmp_path / "m", "--seed", 7).code == 0

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))

    with started("train", "debtags-sample", "--out", tmp_path / "m", preexec_fn=no_large_files) as process:
        _, told = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 2
    assert "Traceback" not in told
    assert "longtail: cannot write" in told
    assert load_model(tmp_path / "m").options.seed == 7
