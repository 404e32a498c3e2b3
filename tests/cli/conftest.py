"""The command line in this process, a tiny data set on disk, and a model of it."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from longtail.cli.lines import LINES
from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.data.load import load_dataset
from longtail.data.write import write_dataset
from longtail.evaluation import truth_for
from longtail.methods import load_model
from longtail.scores.calibrate import fit_calibration
from longtail.scores.chain import Chain


class Ran(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def longtail(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run a command: `longtail("train", folder, "--out", model, stdin=b"...")`."""

    monkeypatch.setattr(LINES, "long_s", 600.0)  # on a busy machine, progress would mix with what tests read

    def run(*arguments: object, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return run


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def on_terminal(longtail: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Run a command whose standard error is a terminal, and return what is drawn there, without colours."""

    def run(*arguments: object) -> str:
        screen = _Terminal()
        with monkeypatch.context() as patched:
            patched.setattr("sys.stderr", screen)
            longtail(*arguments)
        return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", screen.getvalue())

    return run


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Dataset]) -> Path:
    """A folder with train, dev and test."""
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write_dataset(tiny(splits=("train", "dev", "test")), folder)
    return folder


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    """A model trained on it."""
    folder = tmp_path_factory.mktemp("model") / "m"
    assert main(["train", str(data), "--out", str(folder), "--quiet"]) == 0
    return folder


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory, model: Path, data: Path) -> Path:
    """The same model with calibrated scores."""
    tagger, test = load_model(model), load_dataset(data).test
    truth, _ = truth_for(tagger.vocabulary_, test)
    tagger.chain_ = Chain((*tagger.chain_.steps, fit_calibration(tagger.top_k(test, 8), truth)))
    folder = tmp_path_factory.mktemp("calibrated") / "m"
    tagger.save(folder)
    return folder


def words_of(label: int) -> str:
    """A text that `tiny` would give a label."""
    return " ".join(f"word{label}{letter}" for letter in "abc")
