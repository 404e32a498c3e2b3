"""`longtail demo`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longtail.methods import load_model

Run = Callable[..., Any]


def test_the_demo_trains_measures_tags_and_leaves_a_report(longtail: Run, tmp_path: Path) -> None:
    ran = longtail("demo", "a chess game for children", "--out", tmp_path / "demo")
    assert ran.code == 0
    assert "P@1" in ran.out
    assert "your text: a chess game for children" in ran.out
    assert "use::gameplaying" in ran.out
    assert str(tmp_path / "demo" / "report.html") in ran.out
    assert "<!doctype html>" in (tmp_path / "demo" / "report.html").read_text()
    assert len(load_model(tmp_path / "demo" / "model").vocabulary_) == 394
