"""`longtail tune`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.methods import load_model

pytest.importorskip("optuna")
Run = Callable[..., Any]


def test_the_best_options_are_a_file_that_train_reads(longtail: Run, data: Path, tmp_path: Path) -> None:
    best = tmp_path / "best.toml"
    tries = ["--try", "ranker.threshold=0.01..1.0:log", "--try", "ranker.max_passes=5,15"]
    ran = longtail("tune", data, *tries, "--trials", 2, "--out", best)
    assert ran.code == 0, ran.err
    assert "trial 0: nDCG@5 " in ran.err
    assert ran.out.splitlines()[-1].endswith(f"longtail train {data} --method linear --config {best}")
    assert not (tmp_path / "best.toml.work").exists()
    found = longtail("tune", data, *tries, "--trials", 2, "--out", best, "--json", "--quiet").json
    assert longtail("train", data, "--config", best, "--out", tmp_path / "m").code == 0
    chosen = load_model(tmp_path / "m").options.ranker
    values = {"ranker.threshold": chosen.threshold, "ranker.max_passes": chosen.max_passes}
    assert values == found["best"]["values"]
    assert len(found["trials"]) == 2


def test_options_of_the_command_stay_and_defaults_are_tried_where_nothing_is_said(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    best = tmp_path / "best.toml"
    ran = longtail("tune", data, "--trials", 1, "--set", "ranker.max_passes=3", "--seed", 4, "--out", best, "--json")
    assert "ranker.cost_positive" in ran.json["best"]["values"]
    text = best.read_text()
    assert "max_passes = 3" in text
    assert "seed = 4" in text
    assert text.startswith("# Options of linear chosen on held-out texts of tiny: nDCG@5 ")


def test_bad_input_is_one_line(longtail: Run, data: Path, tmp_path: Path) -> None:
    ran = longtail("tune", data, "--try", "ranker.tolerance=3", "--out", tmp_path / "best.toml")
    assert ran.code == 2
    assert "there must be two values to try" in ran.err
    assert not (tmp_path / "best.toml").exists()
    assert longtail("tune", data, "--out", tmp_path).code == 2
