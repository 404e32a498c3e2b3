"""`longtail data`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.load import load_dataset
from tests.drawn import labels_of

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


def test_a_page_says_in_words_what_the_doctor_found(longtail: Run, tmp_path: Path) -> None:
    texts = [f"text number {row} {'word ' * (row % 30)}" for row in range(50)] + ["<i>the same</i>"] * 2
    table = "".join(f"{text},x{row % 7};y{row}\n" for row, text in enumerate(texts))
    (tmp_path / "train.csv").write_text(f"text,labels\n{table}")
    ran = longtail("data", "check", tmp_path, "--report", tmp_path / "r")
    assert ran.out.endswith(f"page: {tmp_path / 'r' / 'data.html'}\n")
    page = (tmp_path / "r" / "data.html").read_text()
    assert page.index("Nothing would break training.") < page.index("<table")
    assert page.index("Repeated texts") < page.index("<table")
    assert "&lt;i&gt;the same" in page
    assert "<i>the same" not in page
    labels = [*labels_of(page)]
    assert {"words", "texts", "training texts", "labels, most frequent first"} <= {label.words for label in labels}
    assert [label for label in labels if not label.inside] == []
    assert not re.search(r"(src|href)=", page)
    written = json.loads((tmp_path / "r" / "data.json").read_text())
    assert written["splits"]["train"]["n_repeated"] == 1
    assert (tmp_path / "r" / "data.md").read_text() + f"page: {tmp_path / 'r' / 'data.html'}\n" == ran.out
    (tmp_path / "train.csv").write_text("text,labels\na,x\nb,x\n")
    assert longtail("data", "check", tmp_path, "--report", tmp_path / "r").code == 1
    assert "Training would fail: 1 fault." in (tmp_path / "r" / "data.html").read_text()
    ran = longtail("data", "check", tmp_path, "--report", tmp_path / "page.html")
    assert (ran.code, "name a folder" in ran.err) == (2, True)


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


def test_a_file_is_not_replaced_by_what_it_is_converted_to(longtail: Run, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text("text,labels,note\none,a;b,mine\n")
    (tmp_path / "link.csv").symlink_to(file)
    for target in ("x.csv", "link.csv"):
        ran = longtail("data", "convert", file, tmp_path / target)
        assert (ran.code, "must not be replaced" in ran.err) == (2, True)
    assert "mine" in file.read_text()
