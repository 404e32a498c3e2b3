"""Numbers too large to count to, bytes that are not Unicode, nested values, links in a circle: one line, exit 2."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_bad_input import refused

Run = Callable[..., Any]

HUGE = "9" * 5000
ABOVE_INT64 = str(1 << 63)
NOT_UTF8 = os.fsdecode(b"\xff\xfe") if os.name == "posix" else "\udcff"
INVALID = pa.StringArray.from_buffers(2, pa.py_buffer(struct.pack("<3i", 0, 2, 4)), pa.py_buffer(b"\xff\xfeab"))
LABELS = [["fruit"], ["rock"]]


@pytest.mark.parametrize("quote", ["", '"'])
def test_column_names_longer_than_a_cell_may_be(longtail: Run, model: Path, tmp_path: Path, quote: str) -> None:
    file = tmp_path / "t.csv"
    file.write_text(f"text,labels,{quote}{'x' * 140_000}\nred apple,fruit,1\n")
    words = "t.csv:1: must be a row of column names", "131072"
    refused(longtail("train", file, "--out", tmp_path / "m"), *words)
    refused(longtail("predict", model, file), *words)
    refused(longtail("data", "check", file), *words)


def test_cells_of_texts_may_be_longer(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"text,labels\nred apple,fruit\n{'y' * 140_000},rock\n")
    assert len(longtail("predict", model, tmp_path / "t.csv").lines) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--set", f"seed={HUGE}"],
        ["--set", f"n_seeds={HUGE}"],
        ["--set", f"n_seeds={ABOVE_INT64}"],
        ["--set", f"features.blocks.{HUGE}.weight=2"],
        ["--set", f"{HUGE}=1"],
        ["--read", f"block_bytes={HUGE}"],
        ["--read", f"block_bytes={1 << 61}"],
        ["--seed", HUGE],
        ["--threads", HUGE],
        ["--config", "CONFIG"],
    ],
)
def test_numbers_in_options(longtail: Run, data: Path, tmp_path: Path, arguments: list[str]) -> None:
    config = tmp_path / "c.toml"
    config.write_text(f"seed = {HUGE}\n")
    words = [str(config) if word == "CONFIG" else word for word in arguments]
    ran = longtail("train", data, "--out", tmp_path / "m", "-q", *words)
    refused(ran)
    assert len(ran.err) < 3000, "a huge value is not repeated whole"
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("k", [ABOVE_INT64, "9" * 30])
def test_more_labels_than_a_machine_can_count(longtail: Run, model: Path, data: Path, k: str) -> None:
    assert len(longtail("predict", model, "--text", "x", "-k", k).lines[0]["labels"]) == 8
    refused(longtail("evaluate", model, data, "-q", "--at", k), "at must be below")
    refused(longtail("predict", model, "--text", "x", "-k", HUGE), "-k", "integer")


def test_a_long_list_costs_no_memory_to_measure_at(longtail: Run, model: Path, data: Path) -> None:
    measured = longtail("evaluate", model, data, "-q", "--json", "--at", f"5,{1 << 61}").json["metrics"]
    assert measured[f"R@{1 << 61}"] == 1.0
    assert measured[f"nDCG@{1 << 61}"] >= measured["nDCG@5"]


def test_constants_of_propensities(longtail: Run, model: Path, data: Path) -> None:
    ran = longtail("evaluate", model, data, "-q", "--propensity", f"{ABOVE_INT64},1.5")
    refused(ran, "a must be less than or equal to 10")


def test_numbers_in_json_lines(longtail: Run, model: Path, tmp_path: Path) -> None:
    good = json.dumps({"text": "red apple", "labels": ["fruit"]})
    file = tmp_path / "train.jsonl"

    def train_with(line: str) -> Any:
        file.write_text(f"{good}\n{line}\n")
        return longtail("train", file, "--out", tmp_path / "m", "-q")

    refused(train_with(f'{{"text": "grey", "labels": [{HUGE}]}}'), "train.jsonl:2: a label must be", "4,300 digits")
    refused(train_with(f'{{"text": {HUGE}, "labels": ["rock"]}}'), 'train.jsonl:2: "text" must be a string')
    refused(train_with(HUGE), "train.jsonl:2: a line must be one JSON object, got a number")
    other = f'{{"text": "grey stone", "labels": [1, "rock"], "n": {HUGE}, "id": {HUGE}}}'
    assert train_with(other).code == 0
    assert len(longtail("predict", model, file).lines) == 2


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"text": INVALID, "labels": LABELS}, "Invalid UTF8"),
        ({"text": ["red", "grey"], "labels": INVALID}, "Invalid UTF8"),
        ({"text": ["red", "grey"], "labels": pa.ListArray.from_arrays([0, 1, 2], INVALID)}, "Invalid UTF8"),
        ({"text": ["red", "grey"], "labels": LABELS, "title": INVALID}, "Invalid UTF8"),
        ({"text": ["red", "grey"], "labels": [[["a"]], [["b"]]]}, "must hold lists of label ids, got lists of list"),
        ({"text": ["red", "grey"], "labels": [[{"a": 1}], [{"a": 2}]]}, "lists of label ids, got lists of struct"),
        ({"text": ["red", "grey"], "labels": [[b"\xff"], [b"a"]]}, "lists of label ids, got lists of binary"),
        ({"text": ["red", "grey"], "labels": [[1.5], [2.5]]}, "lists of label ids, got lists of double"),
        ({"text": ["red", "grey"], "labels": [{"a": 1}, {"a": 2}]}, "must hold texts, got struct"),
        ({"text": [["red"], ["grey"]], "labels": LABELS}, "must hold texts, got list"),
    ],
)
def test_parquet_that_holds_no_strings(longtail: Run, tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    file = tmp_path / "t.parquet"
    pq.write_table(pa.table(columns), file)
    refused(longtail("train", file, "--out", tmp_path / "m", "-q"), "t.parquet", words)
    refused(longtail("data", "check", file, "-q"), "t.parquet", words)


def test_lists_of_label_ids_in_parquet(longtail: Run, tmp_path: Path) -> None:
    texts = ["red apple", "grey stone"]
    for number, labels in enumerate(
        [LABELS, [[1], [2]], [["fruit", None], ["rock"]], pa.array(LABELS, pa.large_list(pa.large_string()))]
    ):
        file = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"text": texts, "labels": labels}), file)
        assert longtail("data", "check", file, "--json", "-q").json["splits"]["train"]["n_assignments"] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "MODEL", "-t", NOT_UTF8],
        ["predict", "MODEL", "-t", "red", "-t", f"a{NOT_UTF8}", "--json"],
        ["predict", "MODEL", "-t", "red", "--allow", NOT_UTF8],
        ["predict", "MODEL", "-t", "red", "--keep", NOT_UTF8],
        ["predict", "MODEL", "-t", "red", "--out", f"{NOT_UTF8}.csv"],
        ["evaluate", "MODEL", "DATA", "--report", NOT_UTF8],
        ["train", "DATA", "--out", NOT_UTF8],
        ["train", "DATA", "--out", "m", "--text-column", NOT_UTF8],
        ["data", "convert", "DATA", f"{NOT_UTF8}.jsonl"],
        [NOT_UTF8],
    ],
)
def test_arguments_that_are_not_utf8(
    longtail: Run, model: Path, data: Path, tmp_path: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [{"MODEL": str(model), "DATA": str(data)}.get(word, word) for word in arguments]
    refused(longtail(*words), "arguments must be UTF-8", "\\udcff")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="Windows makes links only for administrators")
def test_links_in_a_circle(longtail: Run, model: Path, data: Path, tmp_path: Path) -> None:
    for name in ("loop", "loop.txt", "loop.jsonl", "loop.csv", "loop.parquet"):
        (tmp_path / name).symlink_to(tmp_path / name)
    loop = tmp_path / "loop"
    for suffix in ("jsonl", "csv", "parquet"):
        file = loop.with_suffix(f".{suffix}")
        refused(longtail("predict", model, file), "there is no file")
        refused(longtail("evaluate", model, file), "is a link to a file or folder that is not there")
        refused(longtail("predict", model, "-t", "x", "--out", file), "a link that leads back to itself")
        assert file.is_symlink()
    refused(longtail("data", "check", loop), "is a link to a file or folder that is not there")
    refused(
        longtail("data", "convert", data, loop.with_suffix(".jsonl"), "--split", "train"),
        "a link that leads back to itself",
    )
    refused(longtail("train", data, "--out", loop, "-q"), "a link that leads back to itself")
    refused(longtail("train", data, "--out", loop / "m", "-q"), "cannot use the work folder")
    refused(longtail("train", loop, "--out", tmp_path / "m", "-q"), "is a link to a file or folder that is not there")
    for command in (["info", loop], ["predict", loop, "-t", "x"], ["evaluate", loop, data]):
        refused(longtail(*command), "a link that leads back to itself")
    refused(longtail("config", "check", loop.with_suffix(".txt")), "Too many levels of symbolic links")


def test_names_that_are_too_long(longtail: Run, model: Path, data: Path, tmp_path: Path) -> None:
    long = tmp_path / ("a" * 300)
    for command in (
        ["predict", model, long],
        ["predict", model, "-t", "x", "--out", f"{long}.csv"],
        ["info", long],
        ["evaluate", model, long],
        ["train", data, "--out", long, "-q"],
        ["data", "convert", data, f"{long}.jsonl"],
    ):
        refused(longtail(*command), "File name too long")
