"""Benchmarks too long to be run here: their rows are options of today, and the page of their results is current."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longtail.methods import create_method

pytest.importorskip("torch")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True)
def reachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def rows() -> list[tuple[str, str, dict[str, Any]]]:
    groups = importlib.import_module("ablation_groups").GROUPS
    found = [(f"{group}: {row}", *given) for group in groups for row, given in groups[group].rows.items()]
    variants = importlib.import_module("neural_accuracy").variants("encoder", "vectors.txt")
    return found + [(name, *given) for name, given in variants.items()]


def test_rows_of_benchmarks_can_be_made() -> None:
    for name, method, options in rows():
        assert create_method(method, options).name == method.partition("/")[0], name


def test_what_trainings_have_in_common_is_still_where_it_was() -> None:
    """In a process of its own: it stays changed."""
    subprocess.run([sys.executable, "-c", "import once; once.once()"], cwd=BENCHMARKS, check=True)


def test_claims_are_about_rows_that_are_there() -> None:
    for group in importlib.import_module("ablation_groups").GROUPS.values():
        assert {row for claim in group.claims for row in (claim.better, claim.worse)} <= set(group.rows)


def test_the_page_of_ablations_is_current(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = importlib.import_module("ablation_page")
    there = page.PAGE
    monkeypatch.setattr(page, "PAGE", tmp_path / "ablations.md")
    page.write(BENCHMARKS / "results" / "ablations")
    assert (tmp_path / "ablations.md").read_text() == there.read_text(), "run python benchmarks/ablations.py write"
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert pictures
    for picture in pictures:
        assert picture.read_text() == (there.parent / "pictures" / picture.name).read_text()
