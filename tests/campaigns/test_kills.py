"""Kill `longtail train` at random moments, hundreds of times: the resumed model is the same, and none is ever half."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from longtail.errors import ModelFormatError
from longtail.methods import load_model

pytestmark = pytest.mark.campaign
N_KILLS = 200
OPTIONS: dict[str, list[str]] = {
    "linear": [],
    "linear/fast": [],
    "knn": [],
    "stack": ["--set", 'members=["linear/fast","knn"]', "--set", "ranker.n_trees=20"],
}


def command(method: str, out: Path, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "longtail",
        "train",
        "debtags-sample",
        "-m",
        method,
        *OPTIONS[method],
        "-o",
        str(out),
        *more,
    ]


@pytest.mark.parametrize("method", OPTIONS)
def test_a_run_killed_at_random_moments_ends_in_the_same_model(method: str, tmp_path: Path) -> None:
    start = time.perf_counter()
    subprocess.run(command(method, tmp_path / "whole", "--quiet"), check=True)
    seconds = time.perf_counter() - start
    expected = json.loads((tmp_path / "whole" / "manifest.json").read_bytes())["files"]
    moments = random.Random(method)
    n_killed = 0
    out = tmp_path / "killed"
    while n_killed < N_KILLS // len(OPTIONS):
        process = subprocess.Popen(command(method, out, "--quiet", "--resume"))
        try:
            process.wait(moments.uniform(0.1, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            n_killed += 1
            try:
                load_model(out, verify=True)  # a model that is there is whole
            except ModelFormatError as error:
                assert not (out / "manifest.json").exists(), error
            continue
        assert process.returncode == 0
        assert sorted(file.name for file in tmp_path.iterdir()) == ["killed", "whole"]  # nothing is left of the killed
        assert json.loads((out / "manifest.json").read_bytes())["files"] == expected
