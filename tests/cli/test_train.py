"""`longtail train`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.load import load_dataset
from longtail.methods import load_model
from longtail.methods.linear import Linear
from longtail.run.stages import claimed
from longtail.training import work_folder

Run = Callable[..., Any]


def test_a_model_is_saved_and_one_line_says_so(longtail: Run, data: Path, tmp_path: Path) -> None:
    ran = longtail("train", data, "--out", tmp_path / "m")
    assert ran.code == 0
    assert ran.out.startswith(f"{tmp_path / 'm'}: 8 labels from 60 texts, ")
    assert len(ran.out.splitlines()) == 1
    assert "of memory" in ran.err
    assert "of disk" in ran.err
    assert len(load_model(tmp_path / "m").vocabulary_) == 8
    assert not work_folder(tmp_path / "m").exists()


def test_quiet_leaves_only_the_result(longtail: Run, data: Path, tmp_path: Path) -> None:
    ran = longtail("train", data, "--out", tmp_path / "m", "--quiet", "--json")
    assert ran.err == ""
    assert ran.json["n_labels"] == 8
    assert ran.json["expected"]["memory_bytes"] > 0
    assert ran.json["facts"]["name"] == "tiny"


def test_options_of_the_command_win_over_the_file_and_the_file_over_the_preset(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    (tmp_path / "options.toml").write_text("seed = 3\nn_seeds = 1\n[ranker]\nthreshold = 0.01\nmax_passes = 7\n")
    command = ["train", data, "--preset", "linear/parabel", "--config", tmp_path / "options.toml"]
    assert longtail(*command, "--set", "ranker.threshold=0.02", "--seed", 9, "--out", tmp_path / "m").code == 0
    options = load_model(tmp_path / "m").options
    assert options.ranker.negatives == "cluster"  # Parabel's
    assert options.ranker.max_passes == 7
    assert options.ranker.threshold == 0.02
    assert options.seed == 9


def test_the_same_seed_gives_the_same_files(longtail: Run, data: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        longtail("train", data, "--out", tmp_path / name, "--threads", 1 if name == "one" else 2)
    one, two = ((tmp_path / name / "manifest.json").read_bytes() for name in ("one", "two"))
    assert one == two


def test_fields_become_blocks_of_features(longtail: Run, tmp_path: Path) -> None:
    rows = "".join(f"{i},red apple {i},fruit;red\n{i},grey stone {i},rock\n" for i in range(20))
    (tmp_path / "things.csv").write_text("title,body,tags\n" + rows)
    columns = ["--text-column", "body", "--label-column", "tags", "--fields", "title,text"]
    ran = longtail("train", tmp_path / "things.csv", *columns, "--out", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert set(load_model(tmp_path / "m").columns) == {"title", "text"}
    (tmp_path / "new.csv").write_text("title,body\n1,red apple\n")
    tagged = longtail("predict", tmp_path / "m", tmp_path / "new.csv", "--text-column", "body", "-k", 2)
    assert {label["id"] for label in tagged.lines[0]["labels"]} == {"fruit", "red"}


BOOKS = "title,abstract,subjects\n" + "".join(
    f"Apples {i},red apple {i},fruit|red\nStones {i},grey stone {i},rock\n" for i in range(20)
)
COLUMNS = ("--text-column", "abstract", "--label-column", "subjects", "--label-separator", "|")


def test_the_columns_of_training_need_not_be_named_again(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_text(BOOKS)
    ran = longtail("train", tmp_path / "books.csv", *COLUMNS, "--hold-out", "--out", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert longtail("evaluate", tmp_path / "m", tmp_path / "books.csv", "--json").json["n_texts"] == 4
    (tmp_path / "new.csv").write_text("title,abstract,nr\nApples,red apple,17\n")
    tagged = longtail("predict", tmp_path / "m", tmp_path / "new.csv", "-k", 2, "--keep", "nr,abstract").lines[0]
    assert (tagged["nr"], tagged["abstract"]) == ("17", "red apple")
    assert {label["id"] for label in tagged["labels"]} == {"fruit", "red"}
    (tmp_path / "other.csv").write_text("body\nred apple\n")
    ran = longtail("predict", tmp_path / "m", tmp_path / "other.csv")
    assert "must have one column 'abstract', got the columns body; choose with --text-column" in ran.err
    assert longtail("predict", tmp_path / "m", tmp_path / "other.csv", "--text-column", "body").code == 0


def test_fields_may_name_the_column_of_the_text(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "books.csv").write_text(BOOKS)
    ran = longtail("train", tmp_path / "books.csv", *COLUMNS, "--fields", "title,abstract", "--out", tmp_path / "m")
    assert ran.code == 0, ran.err
    assert load_model(tmp_path / "m").columns == ("title", "abstract")
    (tmp_path / "new.csv").write_text("title,abstract\nApples,red apple\n")
    tagged = longtail("predict", tmp_path / "m", tmp_path / "new.csv", "-k", 2)
    assert {label["id"] for label in tagged.lines[0]["labels"]} == {"fruit", "red"}
    assert longtail("evaluate", tmp_path / "m", tmp_path / "books.csv", "--split", "train", "--json").code == 0


@pytest.mark.parametrize("name", ["books.csv", "books.jsonl"])
def test_python_and_the_command_line_read_the_same_columns(longtail: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "books.csv").write_text(BOOKS)
    longtail("data", "convert", tmp_path / "books.csv", tmp_path / "books.jsonl", *COLUMNS)
    csv = {"text_column": "abstract", "label_column": "subjects", "label_separator": "|"}
    given = csv if name == "books.csv" else {}
    longtail("train", tmp_path / name, *(COLUMNS if given else ()), "--out", tmp_path / "m")
    commanded = load_model(tmp_path / "m")
    called = Linear().fit(load_dataset(tmp_path / name, **given).train)
    assert called.describe() == commanded.describe()
    assert called.facts_["fingerprint"] == commanded.facts_["fingerprint"]


def test_a_file_in_cp1252_is_refused_with_what_to_type(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("text,labels\nred \xe4pple,fruit;red\n".encode("cp1252"))
    ran = longtail("train", tmp_path / "a.csv", "--out", tmp_path / "m")
    assert ran.code == 2
    assert (
        "a.csv:2: column 5: must be UTF-8, got byte 0xe4; save the file as UTF-8 (if it is in cp1252: iconv -f"
        in ran.err
    )
    assert ran.err.endswith("or set --read on_bad_utf8=replace\n")
    assert longtail("train", tmp_path / "a.csv", "--out", tmp_path / "m", "--read", "on_bad_utf8=replace").code == 0


def test_another_delimiter_is_recognised_and_remembered(longtail: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("title|text|labels\nred|red apple|fruit;red\ngrey|grey stone|rock\n")
    arguments = ["train", tmp_path / "a.csv", "--out", tmp_path / "m"]
    ran = longtail(*arguments)
    assert ran.code == 2
    assert 'its cells seem to end at |: set --read delimiter="|"' in ran.err
    assert longtail(*arguments, "--read", "delimiter=|").code == 0
    assert longtail("predict", tmp_path / "m", tmp_path / "a.csv").lines[1]["labels"][0]["id"] == "rock"
    assert longtail("evaluate", tmp_path / "m", tmp_path / "a.csv", "--split", "train").code == 0


def test_a_held_out_part_is_not_trained_on_and_is_what_evaluate_takes(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    file = data / "train.jsonl.zst"
    ran = longtail("train", file, "--hold-out", "--out", tmp_path / "m")
    assert "6 of 60 texts are held out as dev" in ran.err
    facts = load_model(tmp_path / "m").facts_
    assert facts["n_texts"] == 54
    assert facts["held_out"] == {"share": 0.1, "at_most": 4000, "seed": 0}
    found = longtail("evaluate", tmp_path / "m", file, "--json").json
    assert found["split"] == "dev (held out)"
    assert found["n_texts"] == 6
    new = longtail("evaluate", tmp_path / "m", file, "--drop-seen", file, "--json").json["without_seen_texts"]
    assert new["n_texts"] == 6
    expected = load_dataset(file).hold_out().dev.fingerprint
    assert expected != facts["fingerprint"]


def test_data_that_have_a_dev_part_are_left_as_they_are(longtail: Run, data: Path, tmp_path: Path) -> None:
    ran = longtail("train", data, "--hold-out", "--out", tmp_path / "m", "--json")
    assert "nothing more is held out" in ran.err
    assert "held_out" not in ran.json["facts"]


def test_an_older_model_is_replaced(longtail: Run, data: Path, tmp_path: Path) -> None:
    longtail("train", data, "--out", tmp_path / "m", "--seed", 1)
    longtail("train", data, "--out", tmp_path / "m", "--seed", 2)
    assert load_model(tmp_path / "m").options.seed == 2
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_what_will_not_fit_is_refused_with_the_options_that_would_help(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    huge = ["train", data, "--out", tmp_path / "m", "--set", "ranker.n_recalled=1000000000000"]
    ran = longtail(*huge)
    assert ran.code == 2
    assert "training needs about 480.0 TB of memory" in ran.err
    assert "ranker.n_recalled" in ran.err.splitlines()[-1]
    assert "--force" in ran.err
    assert not (tmp_path / "m").exists()
    assert longtail(*huge, "--force").code == 0


def test_another_vocabulary_names_the_labels(longtail: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("".join(f"label{i}\tName {i}\n" for i in range(8)))
    longtail("train", data, "--vocabulary", tmp_path / "names.tsv", "--out", tmp_path / "m")
    assert load_model(tmp_path / "m").vocabulary_.names[3] == "Name 3"
    ran = longtail("train", data, "--read", "vocabulary.langage=de", "--out", tmp_path / "m")
    assert ran.code == 2
    assert "unknown option 'vocabulary.langage'; did you mean 'language'?" in ran.err


@pytest.mark.parametrize("split", ["train", "test"])
def test_any_part_can_be_trained_on(longtail: Run, data: Path, tmp_path: Path, split: str) -> None:
    longtail("train", data, "--split", split, "--out", tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.facts_["split"] == split
    assert model.facts_["fingerprint"] == load_dataset(data).split(split).fingerprint


def test_a_field_that_may_be_missing_is_read_where_it_is(longtail: Run, tmp_path: Path) -> None:
    settings = ["--set", 'features.blocks=[{}, {column = "title", otherwise = "text"}]']
    rows = "".join(f"apple {i},red {i},fruit\nstone {i},grey {i},rock\n" for i in range(20))
    (tmp_path / "titled.csv").write_text("title,text,labels\n" + rows)
    (tmp_path / "plain.csv").write_text("text,labels\nred one,fruit\ngrey one,rock\n")
    assert longtail("train", tmp_path / "titled.csv", *settings, "--out", tmp_path / "m").code == 0
    model = load_model(tmp_path / "m")
    assert (model.columns, model.optional_columns) == (("text",), ("title",))
    assert "apple" in set(model.features_.tfidf.terms_.to_pylist())
    (tmp_path / "titled-new.csv").write_text("title,text\napple,?\n")
    (tmp_path / "new.csv").write_text("text\nred\n")
    for name in ("titled-new.csv", "new.csv"):
        found = longtail("predict", tmp_path / "m", tmp_path / name, "-k", 1)
        assert found.lines[0]["labels"][0]["id"] == "fruit"
    assert longtail("predict", tmp_path / "m", "-t", "grey", "-k", 1).lines[0]["labels"][0]["id"] == "rock"
    assert longtail("evaluate", tmp_path / "m", tmp_path / "plain.csv", "--json").json["metrics"]["P@1"] == 1.0
    assert "title where there is one" in longtail("info", tmp_path / "m").out


def test_a_second_training_with_the_same_out_is_refused_while_the_first_one_runs(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    work_folder(tmp_path / "m").mkdir()
    with claimed(work_folder(tmp_path / "m")):
        ran = longtail("train", data, "--out", tmp_path / "m", "--resume")
        assert ran.code == 2
        assert "m.work is in use by another training; wait until that ends, or choose another place" in ran.err
        assert "finished stages are kept" not in ran.err
    assert longtail("train", data, "--out", tmp_path / "m").code == 0
    assert sorted(file.name for file in tmp_path.iterdir() if "m" in file.name) == ["m"]


def test_a_folder_with_files_of_others_is_named_before_anything_is_trained(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    longtail("train", data, "--out", tmp_path / "m")
    (tmp_path / "m" / "notes.md").write_text("mine")
    ran = longtail("train", data, "--out", tmp_path / "m", "--seed", 2)
    assert ran.code == 2
    assert "holds 1 files that longtail did not write (notes.md)" in ran.err
    assert "move them away or choose another place" in ran.err
    assert (tmp_path / "m" / "notes.md").read_text() == "mine"
    assert load_model(tmp_path / "m").options.seed == 0


def test_scores_are_calibrated_unless_asked_not_to(longtail: Run, tmp_path: Path) -> None:
    for flags, calibrated in (((), True), (("--no-calibrate",), False)):
        ran = longtail("train", "debtags-sample", "--method", "knn", "--out", tmp_path / "m", *flags)
        assert ran.code == 0
        assert (load_model(tmp_path / "m").calibration is not None) == calibrated
