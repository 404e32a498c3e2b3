"""`longtail predict`."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from longtail.data.inputs import as_table
from longtail.data.predicted import predictions_file
from longtail.methods import load_model

from .conftest import words_of

Run = Callable[..., Any]


def test_every_line_of_a_file_gets_labels_with_names_and_scores(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text(f"{words_of(3)}\n\n{words_of(5)}\n")
    ran = longtail("predict", model, tmp_path / "texts.txt", "-k", 2)
    assert ran.code == 0
    assert ran.err == ""
    assert [len(line["labels"]) for line in ran.lines] == [2, 2, 2]
    assert ran.lines[0]["labels"][0]["id"] == "label3"
    assert ran.lines[2]["labels"][0]["name"] == "label5"
    expected = load_model(model).predict([words_of(3), "", words_of(5)], k=2)
    for line, suggestions in zip(ran.lines, expected, strict=True):
        assert [label["id"] for label in line["labels"]] == [s.id for s in suggestions]
        assert [label["score"] for label in line["labels"]] == pytest.approx([s.score for s in suggestions], abs=1e-6)


def test_texts_come_from_standard_input_and_from_the_command_line(longtail: Run, model: Path) -> None:
    text = words_of(1)
    piped = longtail("predict", model, stdin=f"{text}\n".encode())
    said = longtail("predict", model, "--text", text)
    assert piped.lines == said.lines
    assert piped.lines[0]["labels"][0]["id"] == "label1"


def test_json_lines_are_read_and_fields_copied(longtail: Run, model: Path) -> None:
    rows = [{"text": words_of(2), "id": "a", "labels": ["label7"]}, {"text": words_of(4), "id": "b"}]
    piped = "".join(json.dumps(row) + "\n" for row in rows).encode()
    ran = longtail("predict", model, "-", "--format", "jsonl", "--keep", "id,text", "-k", 1, stdin=piped)
    assert [(line["id"], line["text"]) for line in ran.lines] == [(row["id"], row["text"]) for row in rows]
    assert [line["labels"][0]["id"] for line in ran.lines] == ["label2", "label4"]


def test_a_file_is_written_whole_and_compressed_by_its_name(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(words_of(i % 8) for i in range(50)))
    ran = longtail("predict", model, tmp_path / "texts.txt", "--out", tmp_path / "found.jsonl.gz")
    assert ran.out == ""
    lines = gzip.decompress((tmp_path / "found.jsonl.gz").read_bytes()).decode().splitlines()
    assert [json.loads(line)["labels"][0]["id"] for line in lines] == [f"label{i % 8}" for i in range(50)]


def test_an_older_file_stays_when_the_texts_turn_out_bad(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "found.jsonl").write_text("precious\n")
    (tmp_path / "texts.txt").write_bytes(b"good\n\xff\n")
    ran = longtail("predict", model, tmp_path / "texts.txt", "--out", tmp_path / "found.jsonl")
    assert ran.code == 2
    assert "texts.txt:2" in ran.err
    assert (tmp_path / "found.jsonl").read_text() == "precious\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.jsonl", "texts.txt"]
    assert longtail("predict", model, tmp_path / "texts.txt", "--read", "on_bad_utf8=replace").code == 0


@pytest.mark.parametrize("name", ["x.csv", "x.tsv.gz", "x.parquet", "x.csv.zst"])
def test_a_table_has_one_row_per_suggestion(longtail: Run, model: Path, tmp_path: Path, name: str) -> None:
    rows = [{"text": words_of(i % 8), "id": f'a"{i}', "labels": []} for i in range(9)]
    (tmp_path / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["predict", model, tmp_path / "texts.jsonl", "--keep", "id", "-k", 2]
    as_lines = longtail(*arguments).lines
    assert longtail(*arguments, "--out", tmp_path / name).code == 0
    path = tmp_path / name
    frame = pd.read_parquet(path) if name == "x.parquet" else pd.read_csv(path, sep="\t" if "tsv" in name else ",")
    expected = [
        (row, line["id"], rank, label["id"], label["name"], label["score"])
        for row, line in enumerate(as_lines)
        for rank, label in enumerate(line["labels"], 1)
    ]
    assert list(frame.columns) == ["row", "id", "rank", "label_id", "label_name", "score"]
    assert list(frame.itertuples(index=False, name=None)) == expected


def test_rows_of_a_table_are_counted_over_all_batches(model: Path, tmp_path: Path) -> None:
    predictions = load_model(model).predict([words_of(1), words_of(2)], k=1)
    with predictions_file(tmp_path / "x.csv", []) as write:
        write(as_table(["a", "b"]), predictions)
        write(as_table(["a", "b"]), predictions)
    assert pd.read_csv(tmp_path / "x.csv")["row"].to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["x.xlsx", "x", "x.json", "x.parquet.gz", "x.gz"])
def test_a_name_that_shows_no_format_is_refused_before_anything_is_read(
    longtail: Run, tmp_path: Path, name: str
) -> None:
    ran = longtail("predict", tmp_path / "no model", "-t", "x", "--out", tmp_path / name)
    assert ran.code == 2
    assert f"must end in .jsonl, .csv, .tsv (also .gz, .zst) or .parquet, got {name}" in ran.err


def test_fields_that_a_table_has_itself_cannot_be_kept(longtail: Run, model: Path, tmp_path: Path) -> None:
    ran = longtail("predict", model, "-t", "x", "--keep", "score", "--out", tmp_path / "x.csv")
    assert "has a column score of its own; --keep other fields, or write .jsonl" in ran.err


def test_the_texts_are_not_replaced_by_their_predictions(longtail: Run, model: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts.jsonl"
    texts.write_text(json.dumps({"text": words_of(1)}) + "\n")
    (tmp_path / "link.jsonl").symlink_to(texts)
    (tmp_path / "hard.jsonl").hardlink_to(texts)
    for name in ("texts.jsonl", "link.jsonl", "hard.jsonl"):
        ran = longtail("predict", model, texts, "--out", tmp_path / name)
        assert ran.code == 2
        assert "must not be replaced; choose another --out" in ran.err
    assert json.loads(texts.read_text()) == {"text": words_of(1)}
    piped = [sys.executable, "-m", "longtail", "predict", str(model), "--format", "jsonl", "--out", str(texts)]
    with texts.open("rb") as stdin:
        ran = subprocess.run(piped, stdin=stdin, capture_output=True, text=True, check=False)
    assert ran.returncode == 2, ran.stderr
    assert "must not be replaced" in ran.stderr


def test_replacing_older_predictions_is_said(longtail: Run, model: Path, tmp_path: Path) -> None:
    arguments = ("predict", model, "-t", words_of(1), "--out", tmp_path / "x.csv")
    assert "replaced" not in longtail(*arguments).err
    assert "x.csv: written, an older file was replaced" in longtail(*arguments).err


def test_labels_below_the_threshold_are_left_out(longtail: Run, model: Path) -> None:
    everything = longtail("predict", model, "-t", words_of(6), "-k", 8).lines[0]["labels"]
    between = (everything[2]["score"] + everything[3]["score"]) / 2
    some = longtail("predict", model, "-t", words_of(6), "-k", 8, "--threshold", between).lines[0]["labels"]
    assert some == everything[:3]


def test_the_best_threshold_needs_calibrated_scores(longtail: Run, calibrated: Path, model: Path) -> None:
    words = ["-t", words_of(6), "-k", 8]
    lowest = load_model(calibrated).chain_.lowest_score("auto")
    everything = longtail("predict", calibrated, *words).lines[0]["labels"]
    some = longtail("predict", calibrated, *words, "--threshold", "auto").lines[0]["labels"]
    assert some == [label for label in everything if label["score"] >= round(lowest, 6)]
    assert 0 < len(some) < len(everything)
    for path, threshold, error in (
        (model, "auto", "needs a model with calibrated scores"),
        (model, "half", "--threshold must be a number or auto, got 'half'"),
    ):
        ran = longtail("predict", path, *words, "--threshold", threshold)
        assert (ran.code, ran.out) == (2, "")
        assert error in ran.err


def test_more_labels_than_there_are_give_as_many_as_there_are(longtail: Run, model: Path) -> None:
    ran = longtail("predict", model, "-t", "word1a", "-k", 1000)
    assert ran.code == 0
    assert len(ran.lines[0]["labels"]) == 8
    assert ran.err == "note: the model knows 8 labels; k = 1,000 gives 8\n"
    assert longtail("predict", model, "-t", "word1a", "-k", 1000, "-q").err == ""


def test_a_precision_that_the_method_has_not_is_refused(longtail: Run, model: Path, data: Path) -> None:
    for command in (["predict", model, "-t", words_of(3)], ["evaluate", model, data]):
        ran = longtail(*command, "--precision", "int8")
        assert ran.code == 2
        assert "precision must be one of auto, fp32 for method linear, got 'int8'" in ran.err
    assert longtail("predict", model, "-t", words_of(3), "--precision", "fp32").code == 0


def test_a_tail_weight_of_the_command_lies_over_that_of_the_model(longtail: Run, data: Path, tmp_path: Path) -> None:
    longtail("train", data, "--out", tmp_path / "m", "--tail-weight", 2)
    trained = load_model(tmp_path / "m")
    assert trained.options.tail_weight == 2
    for more, weight in (((), 2.0), (("--tail-weight", "0"), 0.0), (("--tail-weight", "0.5"), 0.5)):
        told = longtail("predict", tmp_path / "m", "-t", words_of(1), "-k", 3, *more).lines[0]["labels"]
        expected = [s.score for s in trained.predict([words_of(1)], 3, tail_weight=weight)[0]]
        assert [label["score"] for label in told] == pytest.approx(expected, abs=1e-6)
        found = longtail("evaluate", tmp_path / "m", data, "--json", *more).json
        assert found["tail_weight"] == weight


def test_labels_can_be_allowed_or_denied_by_id_name_or_branch(longtail: Run, tmp_path: Path) -> None:
    rows = [{"text": words_of(label), "labels": [f"label{label}"]} for label in range(6)] * 5
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "labels.txt").write_text("".join(f"label{label}\tName {label}\n" for label in range(6)))
    (tmp_path / "hierarchy.tsv").write_text("label0\tgroup\tGroup\nlabel1\tgroup\tGroup\n")
    model = tmp_path / "m"
    assert longtail("train", tmp_path, "--out", model, "-q").code == 0

    def ids(*arguments: str) -> set[str]:
        ran = longtail("predict", model, "-t", words_of(1), "-k", 6, *arguments)
        assert ran.code == 0, ran.err
        return {label["id"] for label in ran.lines[0]["labels"]}

    assert ids("--allow", "label1", "--allow", "Name 4") == {"label1", "label4"}
    assert ids("--deny", "Name 1") == {f"label{label}" for label in (0, 2, 3, 4, 5)}
    assert ids("--allow", "group/*") == {"label0", "label1"}
    assert ids("--deny", "group/*") == {f"label{label}" for label in (2, 3, 4, 5)}
    ran = longtail("predict", model, "-t", "x", "--allow", "Nme 4")
    assert ran.code == 2
    assert "allow: the model has no label 'Nme 4'; did you mean 'Name 4'?" in ran.err


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such files")
def test_out_is_written_through_links_pipes_and_devices(longtail: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "there.jsonl").write_text("older\n")
    (tmp_path / "link.jsonl").symlink_to(tmp_path / "there.jsonl")
    os.mkfifo(tmp_path / "pipe.jsonl")
    predict = ("predict", model, "--text", "word1a", "--out")
    assert longtail(*predict, tmp_path / "link.jsonl").code == 0
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit((tmp_path / "pipe.jsonl").read_text)
        assert longtail(*predict, tmp_path / "pipe.jsonl").code == 0
        assert read.result() == (tmp_path / "there.jsonl").read_text() == longtail(*predict[:-1]).out
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "pipe.jsonl").is_fifo()
    assert longtail(*predict, "/dev/null").code == 0
    assert Path("/dev/null").is_char_device()


EVIL = "=1+1 \x1b[2J\x9b31m"


@pytest.fixture
def evil(longtail: Callable[..., Any], tmp_path: Path) -> Path:
    """A model whose labels are a formula and hold escapes."""
    rows = [{"text": f"word{n % 2}", "labels": [("=1+1", EVIL)[n % 2]]} for n in range(20)]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert longtail("train", tmp_path / "train.jsonl", "--out", tmp_path / "evil", "-q").code == 0
    return tmp_path / "evil"


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_spreadsheets_take_names_and_fields_of_predictions_as_text(
    longtail: Callable[..., Any], evil: Path, tmp_path: Path, suffix: str
) -> None:
    texts, out = tmp_path / "t.jsonl", tmp_path / f"p{suffix}"
    texts.write_text(json.dumps({"text": "word0", "=1+2": "=1+3"}) + "\n")
    assert longtail("predict", evil, texts, "--out", out, "-k", 1, "--keep", "text,=1+2").code == 0
    cells = [line.split("," if suffix == ".csv" else "\t") for line in out.read_text().splitlines()]
    assert [cell.strip('"') for cell in cells[0]] == ["row", "text", "'=1+2", "rank", "label_id", "label_name", "score"]
    assert [cell.strip('"') for cell in cells[1][:6]] == ["0", "word0", "'=1+3", "1", "'=1+1", "'=1+1"]
    exact = tmp_path / "p.parquet"
    assert longtail("predict", evil, texts, "--out", exact, "-k", 1, "--keep", "=1+2").code == 0
    assert pq.read_table(exact).select(["=1+2", "label_id"]).to_pylist() == [{"=1+2": "=1+3", "label_id": "=1+1"}]


def test_json_lines_of_predictions_hold_no_escapes(longtail: Callable[..., Any], evil: Path, tmp_path: Path) -> None:
    ran = longtail("predict", evil, "--text", f"word1 {EVIL}", "--keep", "text", "-k", 1)
    assert longtail("predict", evil, "--text", f"word1 {EVIL}", "--keep", "text", "-k", 1, "-o", tmp_path / "p.jsonl")
    assert (tmp_path / "p.jsonl").read_text() == ran.out
    assert not {c for c in ran.out if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0)}
    assert ran.lines[0]["labels"][0]["name"] == EVIL
    assert ran.lines[0]["text"] == f"word1 {EVIL}"


def test_calibrated_models_tell_what_share_of_the_labels_they_expect_to_have_found(
    longtail: Run, calibrated: Path, model: Path, tmp_path: Path
) -> None:
    words = ["-t", words_of(6), "-t", "unknown", "-k", 3]
    told = load_model(calibrated).predict([words_of(6), "unknown"], 3)
    lines = longtail("predict", calibrated, *words).lines
    assert [line["route"] for line in lines] == told.routes
    assert [line["predicted_recall"] for line in lines] == pytest.approx(told.predicted_recall, abs=1e-6)
    longtail("predict", calibrated, *words, "--out", tmp_path / "x.csv")
    frame = pd.read_csv(tmp_path / "x.csv")
    assert list(frame.columns)[-2:] == ["predicted_recall", "route"]
    assert frame["route"].to_list()[0] == lines[0]["route"]
    assert "route" not in longtail("predict", model, *words).lines[0]


def test_label_sets_are_asked_for_by_flags(longtail: Run, calibrated: Path, model: Path) -> None:
    words = ["-t", words_of(6)]
    some = longtail("predict", calibrated, *words, "--min-recall", 0.5).lines[0]["labels"]
    more = longtail("predict", calibrated, *words, "--min-recall", 0.8).lines[0]["labels"]
    assert some == more[: len(some)]
    refused = longtail("predict", calibrated, *words, "--min-precision", 0.9999)
    assert refused.code == 2
    assert "--min-precision can be 0." in refused.err
    assert (
        "--min-recall needs a model with calibrated scores"
        in longtail("predict", model, *words, "--min-recall", 0.5).err
    )


def test_a_folder_gets_one_file_per_block_and_is_completed_by_the_same_command(
    longtail: Run, model: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    rows = pd.DataFrame({"title": [words_of(row % 8) for row in range(30)], "id": range(30)})
    rows[:20].to_parquet(tmp_path / "in" / "a.parquet")
    rows[20:].to_csv(tmp_path / "in" / "b.csv", index=False)
    out = tmp_path / "out.parquet"
    command = ["predict", model, tmp_path / "in", "--out", f"{out}/", "--text-column", "title", "--keep", "title"]
    command += ["--block-texts", 8, "-k", 1]
    ran = longtail(*command)
    assert ran.code == 0, ran.err
    assert f"{out}: 4 files; 30 texts now, " in ran.err
    assert pq.read_table(out)["label_ids"].to_pylist() == [[f"label{row % 8}"] for row in range(30)]
    (out / "part-00001.parquet").unlink()
    assert f"{out}: 4 files; 3 were there already; 8 texts now, " in longtail(*command).err
    refused = longtail(*command, "--threshold", 0.5)
    assert refused.code == 2
    assert "begun with other options" in refused.err
    assert "a folder of predictions is made from a file" in longtail("predict", model, "--out", f"{out}/").err
