"""`longtail data`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.load import load_dataset

Run = Callable[..., Any]


def test_the_doctor_counts_and_is_content(longtail: Run, data: Path) -> None:
    ran = longtail("data", "check", data)
    assert ran.code == 0
    assert "| train |    60 |" in ran.out
    assert longtail("data", "check", data, "--json").json["splits"]["dev"]["n_texts"] == 60


def test_what_would_break_training_gives_exit_code_1(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"text": "a", "labels": ["x"]}\n{"text": "b", "labels": ["x"]}\n')
    ran = longtail("data", "check", tmp_path)
    assert ran.code == 1
    assert "got only 'x'" in ran.out
    assert [fault["kind"] for fault in longtail("data", "check", tmp_path, "--json").json["faults"]] == ["one label"]


def test_pictures_are_drawn_where_asked(longtail: Run, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    ran = longtail("data", "check", data, "--plots", tmp_path / "pictures")
    assert f"picture: {tmp_path / 'pictures' / 'label_frequency.png'}" in ran.out
    assert (tmp_path / "pictures" / "text_lengths.png").stat().st_size > 1000


def test_columns_of_a_table_are_chosen_by_options(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("body|tags\nab|x/y\ncd|z\n")
    options = ["--text-column", "body", "--label-column", "tags", "--label-separator", "/", "--read", "delimiter=|"]
    found = longtail("data", "check", tmp_path / "t.csv", *options, "--json").json
    assert found["splits"]["train"]["n_assignments"] == 3


def test_a_table_becomes_a_folder_and_a_folder_a_table(longtail: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("text,title,labels\na b,T,x;y\nc,U,y\n")
    assert longtail("data", "convert", tmp_path / "t.csv", tmp_path / "folder", "--fields", "title,text").code == 0
    made = load_dataset(tmp_path / "folder").train
    assert made.texts.to_pydict() == {"text": ["a b", "c"], "title": ["T", "U"]}
    assert made.label_names(0) == ["x", "y"]
    assert longtail("data", "convert", data, tmp_path / "dev.jsonl", "--split", "dev").code == 0
    first = json.loads((tmp_path / "dev.jsonl").read_text().splitlines()[0])
    assert first["labels"] == load_dataset(data).dev.label_names(0)
    ran = longtail("data", "convert", data, tmp_path / "all.jsonl")
    assert ran.code == 2
    assert "choose one with --split" in ran.err
