"""`longtail methods`, `longtail config`, `longtail info`, `longtail --version`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from longtail.methods import METHODS, create_method
from longtail.presets import preset_names

Run = Callable[..., Any]


def test_methods_are_listed_with_their_presets(longtail: Run) -> None:
    listed = {line.split()[0] for line in longtail("methods").out.splitlines()}
    assert listed == {*METHODS.names(), *preset_names()}
    assert longtail("methods", "--json").json["linear"].startswith("Linear recall")


def test_listing_methods_imports_none_of_them_and_says_what_their_docstrings_say() -> None:
    listing = "import sys; from longtail.cli.main import main; main(['methods']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True)
    *lines, modules = ran.stdout.splitlines()
    large = {"torch", "numpy", "pyarrow", "scipy", "numba", "rich", "longtail.methods.base", "longtail.methods.linear"}
    assert large.isdisjoint(modules.split())
    summaries = {name: (METHODS.get(name).__doc__ or "").strip().splitlines()[0] for name in METHODS.names()}
    assert summaries.items() <= {tuple(line.split(maxsplit=1)) for line in lines}
    assert {METHODS.summary(name) for name in METHODS.names()} == set(summaries.values())


def test_what_config_shows_can_be_trained_with(longtail: Run, data: Path, tmp_path: Path) -> None:
    shown = longtail("config", "show", "linear/parabel")
    assert shown.code == 0
    file = tmp_path / "all.toml"
    file.write_text(shown.out)
    checked = longtail("config", "check", file, "--method", "linear/parabel")
    assert checked.out == f"{file} can be used with --method linear/parabel; it changes nothing\n"
    found = longtail("config", "check", file, "--json").json
    usual, parabel = create_method("linear").options, create_method("linear/parabel").options
    assert ("ranker.negatives" in found) == (usual.ranker.negatives != parabel.ranker.negatives)
    assert longtail("train", data, "--config", file, "--out", tmp_path / "m").code == 0


def test_config_shows_the_options_of_another_part(longtail: Run) -> None:
    shown = longtail("config", "show", "knn", "--set", "points.kind=words", "--set", "points.vectors.width=7").out
    assert 'kind = "words"' in shown
    assert "width = 7" in shown
    assert "[points.features]" not in shown
    ran = longtail("config", "show", "knn", "--set", "points.kind=letters")
    assert (ran.code, ran.err) == (2, "longtail: knn: points.kind must be one of 'tfidf', 'words', got 'letters'\n")


def test_config_check_says_what_a_file_changes_and_what_is_wrong(longtail: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[ranker]\nthreshold = 0.4321\n")
    assert "  ranker.threshold = 0.4321\n" in longtail("config", "check", file).out
    file.write_text("[ranker]\ntreshold = 0.3\nmax_passes = 0\n")
    ran = longtail("config", "check", file)
    assert ran.code == 2
    assert "mine.toml" in ran.err
    assert "did you mean 'threshold'?" in ran.err
    assert "max_passes" in ran.err
    file.write_text("[ranker\n")
    assert "must be TOML" in longtail("config", "check", file).err


def test_info_tells_what_a_model_is_and_how_even_its_clusters_are(
    longtail: Run, model: Path, data: Path, tmp_path: Path
) -> None:
    ran = longtail("info", model, "--verify")
    assert ran.code == 0
    assert "60 texts of tiny, train" in ran.out
    assert "checksums right" in ran.out
    assert "texts per cluster" in ran.out
    assert "pifa" in ran.out
    found = longtail("info", model, "--json").json
    members = found["members"]
    assert found["data"]["n_labels"] == 8
    assert members[0]["texts_per_cluster"]["min"] <= members[0]["texts_per_cluster"]["median"]
    assert found["bytes"] == sum(f.stat().st_size for f in model.iterdir() if f.name != "manifest.json")
    longtail("train", data, "--set", "n_seeds=2", "--set", "search.beam=7", "--out", tmp_path / "m")
    shown = longtail("info", tmp_path / "m")
    assert "search.beam = 7" in shown.out
    assert "ensemble of 2" in shown.out
    assert "seed 1" in shown.out


def test_the_version_is_that_of_the_package(longtail: Run) -> None:
    assert longtail("--version").out == f"longtail {version('longtail')}\n"


def test_help_is_shown_where_nothing_is_asked(longtail: Run) -> None:
    ran = longtail()
    assert ran.code == 0
    assert "evaluate" in ran.out
    assert "Missing command (longtail data --help)" in longtail("data").err
