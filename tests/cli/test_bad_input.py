"""Bad input gives one clear line and exit code 2, or a defined result; and costs nobody an older model."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.methods import load_model

Run = Callable[..., Any]


def refused(ran: Any, *parts: str) -> None:
    """The command did nothing but say why, in one line."""
    assert ran.code == 2, ran
    assert ran.out == ""
    lines = [line for line in ran.err.splitlines() if line.startswith("longtail: ")]
    assert len(lines) == 1, ran.err
    assert "Traceback" not in ran.err
    for part in parts:
        assert part in lines[0]


def write(path: Path, *rows: tuple[str, list[str]]) -> Path:
    path.write_text("".join(json.dumps({"text": text, "labels": labels}) + "\n" for text, labels in rows))
    return path


GOOD = (("red apple", ["fruit", "red"]), ("grey stone", ["rock"])) * 5


def test_an_empty_file(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    refused(longtail("train", tmp_path / "empty.jsonl", "--out", tmp_path / "m"), "empty.jsonl", "it is empty")
    (tmp_path / "empty.txt").write_text("")
    refused(longtail("predict", model, tmp_path / "empty.txt"), "empty.txt must hold at least one text")
    refused(longtail("evaluate", model, tmp_path / "empty.jsonl"), "it is empty")


def test_no_labels_at_all(longtail: Run, model: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "train.jsonl", ("one", []), ("two", []))
    refused(longtail("train", file, "--out", tmp_path / "m"), "training needs labels, got 2 texts without any")
    refused(longtail("evaluate", model, file, "--split", "train"), "at least one text must have true labels")
    assert longtail("data", "check", file).code == 1


def test_one_label_only(longtail: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "train.jsonl", ("one", ["x"]), ("two", ["x"]))
    refused(longtail("train", file, "--out", tmp_path / "m"), "at least two labels, got only 'x'")


def test_a_label_without_texts_is_known_but_never_found(longtail: Run, tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", *GOOD)
    (tmp_path / "labels.txt").write_text("fruit\nred\nrock\nnever used\n")
    assert longtail("train", tmp_path, "--out", tmp_path / "m", "--json").json["n_labels_without_texts"] == 1
    found = longtail("predict", tmp_path / "m", "-t", "red apple", "-k", 4).lines[0]["labels"]
    assert {label["id"] for label in found} == {"fruit", "red", "rock"}


def test_texts_without_words(longtail: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "train.jsonl", ("", ["x"]), ("  ", ["y"]))
    assert longtail("data", "check", file).code == 1
    ran = longtail("train", file, "--out", tmp_path / "m")
    assert ran.code in (0, 2)
    assert "Traceback" not in ran.err


def test_a_text_of_5_megabytes(longtail: Run, tmp_path: Path) -> None:
    long = "red apple " * 500_000
    file = write(tmp_path / "train.jsonl", *GOOD, (long, ["fruit"]))
    assert longtail("train", file, "--out", tmp_path / "m").code == 0
    (tmp_path / "long.txt").write_text(f"{long}\ngrey stone\n")
    found = longtail("predict", tmp_path / "m", tmp_path / "long.txt", "-k", 1).lines
    assert [line["labels"][0]["id"] for line in found] == ["fruit", "rock"]


def test_nul_bytes_are_characters_like_others(longtail: Run, tmp_path: Path) -> None:
    file = write(tmp_path / "train.jsonl", *GOOD, ("red\0apple", ["fruit"]))
    assert longtail("train", file, "--out", tmp_path / "m").code == 0
    (tmp_path / "t.txt").write_bytes(b"red apple\0\0\n")
    assert longtail("predict", tmp_path / "m", tmp_path / "t.txt", "-k", 1).lines[0]["labels"][0]["id"] == "fruit"
    assert "control characters" in longtail("data", "check", file).out


def test_invalid_utf8(longtail: Run, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    good = json.dumps({"text": "a", "labels": ["x"]}).encode()
    file.write_bytes(good + b"\n" + good.replace(b'"a"', b'"b\xe9"') + b"\n")
    refused(longtail("train", file, "--out", tmp_path / "m"), "train.jsonl:2: column", "byte 0xe9")
    (tmp_path / "t.txt").write_bytes(b"one\ntwo\n\xc3(\n")
    refused(longtail("predict", model, tmp_path / "t.txt", "-q", "--out", tmp_path / "p.jsonl"), "t.txt:3: column 1")


def test_labels_that_are_no_list_and_lines_that_are_no_json(longtail: Run, tmp_path: Path) -> None:
    file = tmp_path / "train.jsonl"
    file.write_text('{"text": "a", "labels": ["x"]}\n{"text": "b", "labels": "y"}\n')
    refused(longtail("train", file, "--out", tmp_path / "m"), "train.jsonl:2:", "must be a list of label ids")
    file.write_text('{"text": "a", "labels": ["x"]}\n{"text": "b"\n')
    refused(longtail("train", file, "--out", tmp_path / "m"), "train.jsonl:2:", "one JSON object")


def test_duplicate_ids(longtail: Run, tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", *GOOD)
    (tmp_path / "labels.txt").write_text("fruit\tFruit\nred\tRed\nfruit\tFruits\n")
    refused(longtail("train", tmp_path, "--out", tmp_path / "m"), "labels.txt", "'fruit'")
    doubled = write(tmp_path / "other.jsonl", ("red apple", ["fruit", "fruit"]), ("grey stone", ["rock"]))
    assert longtail("data", "check", doubled, "--json").json["splits"]["train"]["n_assignments"] == 2


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--method", "linaer"], ["unknown method 'linaer'; did you mean 'linear'?", "longtail methods"]),
        (["--method", "linear/parable"], ["unknown preset 'linear/parable'; did you mean 'linear/parabel'?"]),
        (["--set", "ranker.treshold=1"], ["unknown option 'ranker.treshold'; did you mean 'threshold'?"]),
        (["--set", "ranker.max_passes=0"], ["ranker.max_passes must be greater than 0, got 0"]),
        (["--set", "seed=three"], ["seed must be", "got 'three'"]),
        (["--set", "seed"], ["must be option=value"]),
        (["--config", "none.toml"], ["cannot read none.toml", "No such file"]),
        (["--fields", "title,titel"], ["title"]),
        (["--fields", "text,,title"], ["fields must be different column names"]),
        (["--split", "trian"], ["has no split 'trian', only train, dev, test"]),
        (["--threads", "0"], ["threads must be a whole number of at least 1, got 0"]),
        (["--threads", "two"], ["--threads", "valid integer"]),
        (["--format", "tabel"], ["unknown format 'tabel'; did you mean 'table'?"]),
        (["--text-column", "txt"], ['must have "txt"', "text_column"]),
        (["--read", "on_bad_utf=replace"], ["unknown option 'on_bad_utf'; did you mean 'on_bad_utf8'?"]),
        (["--read", "progress=1"], ["--read must be an option of the format or of the vocabulary, got 'progress'"]),
        (["--read", "vocabulary=1"], ["must name an option of the vocabulary", "vocabulary.language=de"]),
        (["--read", "vocabulary.path=7"], ["vocabulary.path must be a text, got 7"]),
        (["--vocabulary", "x", "--read", "vocabulary.ids=uris"], ["vocabulary.ids must be one of uri, prefixed"]),
        (["--vocabulary", "none.ttl"], ["there is no file none.ttl"]),
        (["--tail-weight", "-1"], ["tail_weight must be greater than or equal to 0, got -1"]),
        (["--tail-weight", "11"], ["tail_weight must be less than or equal to 10, got 11"]),
        (["--methd", "linear"], ["No such option", "--methd", "--method"]),
    ],
)
def test_an_option_that_cannot_be(
    longtail: Run, data: Path, tmp_path: Path, arguments: list[str], parts: list[str]
) -> None:
    refused(longtail("train", data, "--out", tmp_path / "m", *arguments), *parts)
    assert list(tmp_path.iterdir()) == []


def test_commands_that_are_incomplete_or_unknown(longtail: Run, data: Path) -> None:
    refused(longtail("train", data), "--out", "longtail train --help")
    refused(longtail("trian", data), "No such command", "trian")


def test_data_that_are_not_there(longtail: Run, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    refused(longtail("train", "debtag-sample", "--out", out), "no file or folder", "did you mean 'debtags-sample'?")
    refused(longtail("train", "debtags", "--out", out), "the bundled sample of it is named debtags-sample")
    refused(longtail("predict", model, tmp_path / "none.txt"), "there is no file", "none.txt")
    refused(longtail("evaluate", model, tmp_path / "none"), "no file or folder")
    (tmp_path / "folder").mkdir()
    refused(longtail("data", "check", tmp_path / "folder"), "cannot tell the format of")


@pytest.mark.parametrize(("k", "message"), [("0", "got 0"), ("-3", "got -3"), ("five", "valid integer")])
def test_k_must_be_a_number_of_labels(longtail: Run, model: Path, k: str, message: str) -> None:
    refused(longtail("predict", model, "-t", "x", "-k", k), "k", message)


@pytest.mark.parametrize("at", ["0", "1,x", "", "-1"])
def test_lengths_must_be_numbers(longtail: Run, model: Path, data: Path, at: str) -> None:
    refused(longtail("evaluate", model, data, f"--at={at}"), "at")


def test_an_output_folder_that_cannot_be_written(longtail: Run, data: Path, model: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("somebody's")
    refused(longtail("train", data, "--out", tmp_path / "file"), "file exists and is not a longtail model")
    refused(longtail("train", data, "--out", tmp_path / "file" / "m"), "not a writable folder")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("somebody's")
    refused(longtail("train", data, "--out", tmp_path / "folder"), "folder exists and is not a longtail model")
    refused(longtail("predict", model, "-t", "x", "--out", tmp_path / "none" / "p.jsonl"), "cannot write", "p.jsonl")
    refused(longtail("evaluate", model, data, "-q", "--report", tmp_path / "file"), "cannot write the report")
    assert (tmp_path / "file").read_text() == "somebody's"
    assert (tmp_path / "folder" / "thesis.tex").read_text() == "somebody's"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_an_output_folder_without_permission(longtail: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    refused(longtail("train", data, "--out", tmp_path / "locked" / "m"), "not a writable folder")


def test_a_model_that_is_none(longtail: Run, data: Path, tmp_path: Path) -> None:
    for command in (["predict", tmp_path, "-t", "x"], ["evaluate", tmp_path, data], ["info", tmp_path]):
        refused(longtail(*command), "is not a longtail model", "manifest.json")
    refused(longtail("info", tmp_path / "none"), "none")


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "newer"])
def test_a_damaged_model(longtail: Run, model: Path, data: Path, tmp_path: Path, damage: str) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(model, broken)
    victim = max((file for file in broken.iterdir() if file.suffix == ".safetensors"), key=lambda f: f.stat().st_size)
    content = bytearray(victim.read_bytes())
    if damage == "cut":
        victim.write_bytes(content[:-10])
    elif damage == "flipped":
        content[-10] ^= 1
        victim.write_bytes(content)
    elif damage == "gone":
        victim.unlink()
    else:
        manifest = json.loads((broken / "manifest.json").read_text())
        (broken / "manifest.json").write_text(json.dumps(manifest | {"format": 99}))
    part = "install a newer longtail" if damage == "newer" else victim.name
    refused(longtail("predict", broken, "-t", "x"), part)
    refused(longtail("info", broken, "--verify"), part)
    assert longtail("train", data, "--out", broken, "-q").code == 0  # a broken model may be replaced
    assert load_model(broken)


def test_a_failed_training_leaves_the_older_model(longtail: Run, data: Path, tmp_path: Path) -> None:
    longtail("train", data, "--out", tmp_path / "m", "--seed", 5)
    bad = write(tmp_path / "train.jsonl", ("one", ["x"]))
    refused(longtail("train", bad, "--out", tmp_path / "m"))
    assert load_model(tmp_path / "m").options.seed == 5


def test_resuming_another_run_is_refused(longtail: Run, data: Path, tmp_path: Path) -> None:
    work = tmp_path / "m.work"
    work.mkdir()
    (work / "key.json").write_text('{"another": "run"}')
    ran = longtail("train", data, "--out", tmp_path / "m", "--resume")
    refused(ran, "was begun with other data or options")
    ran = longtail("train", data, "--out", tmp_path / "m")
    assert ran.code == 0
    assert "--resume would have gone on with it" in ran.err


def test_folders_that_are_no_work_folders_are_left_alone(longtail: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "m.work").mkdir()
    (tmp_path / "m.work" / "thesis.tex").write_text("somebody's")
    refused(longtail("train", data, "--out", tmp_path / "m"), "is not a work folder")
    assert (tmp_path / "m.work" / "thesis.tex").exists()
