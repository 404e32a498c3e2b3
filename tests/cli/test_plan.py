"""`longtail plan`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_memory_disk_and_time_are_told_beside_what_is_free(longtail: Run, data: Path) -> None:
    ran = longtail("plan", data)
    assert ran.code == 0, ran.err
    assert "linear on tiny: 60 texts, 8 labels" in ran.out
    rows = {line.split()[0]: line.split() for line in ran.out.splitlines() if line.strip()}
    assert {"memory", "programs", "disk", "time"} <= rows.keys()
    assert len(rows["memory"]) == 5  # needed and free, with units
    assert ran.out.splitlines()[-1].startswith("it fits, and takes about ")


def test_counting_alone_leaves_the_time_out(longtail: Run, data: Path) -> None:
    found = longtail("plan", data, "--count-only", "--json").json
    assert found["seconds"] is None
    assert found["fits"]
    assert found["memory"]["needed"] == pytest.approx(sum(found["parts"].values()), abs=9)
    assert found["disk"]["free"] > 0
    assert (found["n_texts"], found["n_labels"]) == (60, 8)


def test_plan_and_train_tell_the_same(longtail: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "options.toml").write_text("n_seeds = 3\n")
    how = [data, "--config", tmp_path / "options.toml", "--set", "ranker.n_recalled=9", "--out", tmp_path / "m"]
    expected = longtail("train", *how, "--json", "--quiet").json["expected"]
    planned = longtail("plan", *how, "--json", "--count-only").json
    assert planned["memory"]["needed"] == expected["memory_bytes"]
    assert planned["disk"]["needed"] == expected["disk_bytes"]
    assert expected["gpu_bytes"] == 0


def test_what_will_not_fit_is_said_with_the_option_that_helps(longtail: Run, data: Path, tmp_path: Path) -> None:
    ran = longtail("plan", data, "--count-only", "--set", "ranker.n_recalled=1000000000000")
    assert ran.code == 1
    last = ran.out.splitlines()[-1]
    assert last.startswith("it does not fit: training needs about 480.0 TB of memory")
    assert "make it smaller with --set ranker." in last
    assert "ranker.n_recalled" in last
    asked = longtail("plan", data, "--count-only", "--set", "ranker.n_recalled=1000000000000", "--json")
    assert asked.code == 1
    assert not asked.json["fits"]


def test_a_network_is_planned_by_its_parts(longtail: Run, data: Path, tiny_encoder: Path, tmp_path: Path) -> None:
    how = ["--method", "lightxml", "--set", f'encoders.0.model="{tiny_encoder}"', "--set", "encoders.0.n_layers=1"]
    found = longtail("plan", data, *how, "--set", "training.batch_size=16", "--json").json
    assert found["seconds"] > 0
    assert "encoder and its optimiser" in found["parts"]
    large = [*how, "--set", "training.batch_size=60"]
    assert longtail("plan", data, *large, "--count-only", "--json").json["memory"]["needed"] > found["memory"]["needed"]
