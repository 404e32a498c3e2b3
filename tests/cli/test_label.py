"""`longtail label`: what is written, and what is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import longtail as package
from longtail.data.dataset import Dataset

Run = Callable[..., object]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, tiny: Callable[..., Dataset]) -> Path:
    path = tmp_path_factory.mktemp("label") / "m"
    package.Linear().fit(tiny(n_texts=700, n_labels=8).train).save(path)
    return path


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    package.load_model(trained).save(tmp_path / "m")
    return tmp_path / "m"


def test_each_change_is_said_and_listed(longtail: Run, folder: Path) -> None:
    assert (
        longtail("label", "rename", folder, "label0", "Zero", "--person", "Anna").out == "label0: renamed to 'Zero'\n"
    )
    assert longtail("label", "merge", folder, "label1", "Zero").out == "label1: merged into label0\n"
    assert longtail("label", "retire", folder, "label2").out == "label2: retired\n"
    assert longtail("label", "restore", folder, "label2").out == "label2: restored\n"
    assert longtail("label", "undo", folder).out == "undone: label2: restored\n"
    lines = longtail("label", "history", folder).out.splitlines()
    assert len(lines) == 5
    assert "Anna  label0: renamed to 'Zero'" in lines[0]
    edits = longtail("label", "history", folder, "--json").json
    assert [edit["action"] for edit in edits] == ["rename", "merge", "retire", "restore", "undo"]


def test_a_label_is_added_from_a_file_of_examples(longtail: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "examples.txt").write_text("heat pump control\n\npump of heat\n")
    ran = longtail(
        "label", "add", folder, "Heat pumps", "--examples", tmp_path / "examples.txt", "--example", "a heat pump"
    )
    assert ran.out == "added 'Heat pumps' (heat-pumps) with 3 examples\n"
    assert package.load_model(folder).label_history[0].examples[2] == {"text": "pump of heat"}


def test_the_harm_of_a_new_label_is_told(longtail: Run, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "known.csv").write_text("text,labels\nword0a word0b,label0\nword1a word1b,label1\n")
    ran = longtail(
        "label",
        "add",
        folder,
        "New",
        "--example",
        "word0a word0b",
        "--data",
        tmp_path / "known.csv",
        "--split",
        "train",
    )
    assert ran.code == 0, ran.err
    assert "right labels among the first five of 2 texts" in ran.out


def test_wrong_input_is_one_line(longtail: Run, folder: Path) -> None:
    ran = longtail("label", "retire", folder, "labl0")
    assert ran.code == 2
    assert "no label 'labl0'; did you mean 'label0'" in ran.err
    assert "--ids must be" in longtail("label", "sync", folder, folder / "x.ttl", "--ids", "q").err
