"""`longtail evaluate`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.load import load_dataset
from longtail.methods import load_model
from longtail.metrics import MetricOptions, evaluate

Run = Callable[..., Any]


def test_the_cards_of_a_report_show_ids_and_titles_of_a_table(longtail: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = [f"{1000 + row},Title {row},word{row % 2} a,label{row % 2}" for row in range(40)]
    table.write_text("\n".join(["id,title,text,labels", *rows]))
    words = ["--fields", "text", "--hold-out", "--out", tmp_path / "m"]
    assert longtail("train", table, *words).code == 0
    ran = longtail("evaluate", tmp_path / "m", table, "--report", tmp_path / "r")
    assert (ran.code, ran.err) == (0, "")
    cards = json.loads((tmp_path / "r" / "report.json").read_text())["texts"]
    assert cards
    assert all(card["title"] == f"Title {int(card['id']) - 1000}" for card in cards)


def test_json_has_fractions_for_all_lengths_and_says_what_was_measured(longtail: Run, model: Path, data: Path) -> None:
    ran = longtail("evaluate", model, data, "--split", "dev", "--json", "--at", "1,3,5,25,50,100")
    found = ran.json
    assert ran.code == 0
    assert {"P@1", "F1@5", "R@100", "nDCG@25"} <= set(found["metrics"])
    assert all(0 <= value <= 1 for value in found["metrics"].values())
    assert (found["n_texts"], found["split"], found["method"]) == (60, "dev", "linear")
    assert found["propensities"] == [{"a": 0.55, "b": 1.5}]
    dev, opened = load_dataset(data).dev, load_model(model)
    top = opened.top_k(dev, 100)
    options = MetricOptions(at=(1, 3, 5, 25, 50, 100))
    expected = evaluate(top, dev.labels, opened.train_counts_, 60, options)
    assert found["metrics"] == pytest.approx(expected.values)
    assert found["bands"].keys() == expected.bands.keys()


def test_tables_show_bands_and_intervals(longtail: Run, model: Path, data: Path) -> None:
    ran = longtail("evaluate", model, data, "--intervals", "--threshold", 0.5)
    assert ran.code == 0
    assert "linear on tiny, dev: 60 texts" in ran.out
    assert "P@k: right among the first k" in ran.out
    assert "ECE@k: scores off the share right, 0 is best" in ran.out
    assert "Brier@k: squared error of scores" in ran.out
    assert "torso, 11 to 100" in ran.out
    assert "–" in ran.out
    assert "score ≥ 0.5" in ran.out
    for name in ("micro-F1: over all pairs", "micro-P: of the suggested", "micro-R: of the true", "macro-F1: mean"):
        assert name in ran.out


def test_the_best_threshold_is_that_of_the_calibrated_model(longtail: Run, calibrated: Path, data: Path) -> None:
    opened = load_model(calibrated)
    lowest, dev = opened.chain_.lowest_score("auto"), load_dataset(data).dev
    found = longtail("evaluate", calibrated, data, "--threshold", "auto", "--json").json
    assert found["threshold"] == lowest
    suggested = [{each.id for each in labels} for labels in opened.predict(dev, 20, threshold="auto")]
    true = [set(dev.label_names(row)) for row in range(len(dev))]
    right, n = sum(len(a & b) for a, b in zip(suggested, true, strict=True)), sum(map(len, suggested))
    assert found["metrics"]["micro-P"] == pytest.approx(right / n)
    assert found["metrics"]["micro-R"] == pytest.approx(right / sum(map(len, true)))
    assert found["metrics"]["micro-F1"] == pytest.approx(2 * right / (n + sum(map(len, true))))


def test_a_threshold_cuts_lists_longer_than_those_that_are_shown(longtail: Run, model: Path, data: Path) -> None:
    found = longtail("evaluate", model, data, "--threshold", "0", "--at", "1", "--json").json
    assert found["metrics"]["micro-R"] == 1.0  # of eight labels, each list has all


def test_labels_are_matched_by_id_and_unknown_ones_are_missed(longtail: Run, model: Path, tmp_path: Path) -> None:
    rows = [
        {"text": "word3a word3b word3c", "labels": ["label3"]},
        {"text": "word0a word0b word0c", "labels": ["a stranger", "label0"]},
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = longtail("evaluate", model, tmp_path / "test.jsonl", "--json", "--at", "1,8").json
    assert found["metrics"]["P@1"] == 1.0
    assert found["metrics"]["R@8"] == 0.75
    assert found["bands"]["unseen"]["R@8"] == 0.0


def test_texts_seen_in_training_can_be_left_out(longtail: Run, model: Path, data: Path, tmp_path: Path) -> None:
    dataset = load_dataset(data)
    seen = dataset.train.texts["text"][0].as_py()
    new = dataset.dev.texts["text"][0].as_py()
    rows = [{"text": seen, "labels": ["label7"]}, {"text": new, "labels": dataset.dev.label_names(0)}]
    (tmp_path / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = longtail("evaluate", model, tmp_path / "dev.jsonl", "--drop-seen", data, "--json").json
    assert found["n_texts"] == 2
    assert found["without_seen_texts"]["n_texts"] == 1
    assert found["without_seen_texts"]["metrics"]["P@1"] == 1.0
    tables = longtail("evaluate", model, tmp_path / "dev.jsonl", "--drop-seen", data).out
    assert "without texts that occur word for word in training" in tables


def test_scores_on_training_texts_are_refused_or_said_to_be_worthless(
    longtail: Run, data: Path, tmp_path: Path
) -> None:
    file = data / "train.jsonl.zst"
    longtail("train", file, "--out", tmp_path / "m")
    for more in ([], ["--split", "dev"]):
        ran = longtail("evaluate", tmp_path / "m", file, "--json", *more)
        assert ran.code == 2
        assert "--hold-out" in ran.err
    ran = longtail("evaluate", tmp_path / "m", file, "--split", "train", "--json")
    assert ran.code == 0
    assert "note: the model was trained on these very texts (train)" in ran.err


def test_a_held_out_part_of_other_data_cannot_be_told(longtail: Run, data: Path, tmp_path: Path) -> None:
    longtail("train", data / "train.jsonl.zst", "--hold-out", "--out", tmp_path / "m")
    rows = [{"text": "word1a", "labels": ["label1"]}, {"text": "word2a", "labels": ["label2"]}] * 10
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = longtail("evaluate", tmp_path / "m", tmp_path / "train.jsonl", "--split", "dev")
    assert ran.code == 2
    assert "not known which texts were held out" in ran.err
    assert longtail("evaluate", tmp_path / "m", tmp_path / "train.jsonl", "--json").json["split"] == "train"


def test_a_report_is_written(longtail: Run, model: Path, data: Path, tmp_path: Path) -> None:
    ran = longtail("evaluate", model, data, "--split", "test", "--report", tmp_path / "report", "--json")
    assert ran.json["report"]["report.html"] == str(tmp_path / "report" / "report.html")
    assert {file.name for file in (tmp_path / "report").iterdir()} == {"report.html", "report.json", "report.md"}
    written = json.loads((tmp_path / "report" / "report.json").read_text())
    assert written["results"]["metrics"] == ran.json["metrics"]
    assert written["data"]["split"] == "test"


def test_a_report_shows_the_threshold(longtail: Run, model: Path, data: Path, tmp_path: Path) -> None:
    assert longtail("evaluate", model, data, "--threshold", "0.4", "--report", tmp_path / "r").code == 0
    for file in ("report.html", "report.md"):
        assert "score ≥ 0.4" in (tmp_path / "r" / file).read_text()
        assert "micro-P: of the suggested pairs, right" in (tmp_path / "r" / file).read_text()
