"""What a report finds: precision and recall, confused labels, the worst texts and why, the baseline, the card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.errors import DataError
from longtail.evaluation import Evaluation, evaluate_model
from longtail.methods import create_method
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions
from longtail.report import html_report, make_report, markdown_report, write_report
from longtail.report.baseline import is_baseline, measure_baseline
from longtail.report.card import load_report, model_card
from longtail.report.findings import findings
from longtail.report.mistakes import confused_labels, precision_recall, reasons, worst_texts
from longtail.run.run import Run
from longtail.types import LabelMatrix, TopK

FEW = BootstrapOptions(n_resamples=50)


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny()


@pytest.fixture(scope="module")
def model(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Method:
    return create_method("knn", {"n_neighbours": 5}).fit(data.train)


@pytest.fixture(scope="module")
def evaluation(model: Method, data: Dataset) -> Evaluation:
    return evaluate_model(model, data.test, bootstrap=FEW)


@pytest.fixture(scope="module")
def report(model: Method, data: Dataset, evaluation: Evaluation) -> dict[str, Any]:
    baseline = measure_baseline(data.train, evaluation, Run(), FEW)
    return make_report(model, evaluation, "tiny", "test", baseline=baseline)


def judged(
    evaluation: Evaluation, lists: list[list[int]], scores: list[list[float]], true: list[list[int]]
) -> Evaluation:
    """An evaluation of lists written by hand, over the labels of another."""
    rows = np.arange(len(lists))
    predicted = TopK(np.array(lists, np.int32), np.array(scores, np.float32))
    truth = LabelMatrix.from_lists(true, evaluation.truth.n_labels)
    return replace(evaluation, predicted=predicted, truth=truth, split=evaluation.split.take(rows))


def test_precision_falls_from_the_highest_score_and_recall_rises(evaluation: Evaluation) -> None:
    lists = judged(evaluation, [[0, 1], [2, 3]], [[0.9, 0.5], [0.9, 0.1]], [[0], [3, 4]])
    assert [(round(at["score"], 2), at["precision"], at["recall"]) for at in precision_recall(lists)] == [
        (0.9, 0.5, 1 / 3),
        (0.5, 1 / 3, 1 / 3),
        (0.1, 0.5, 2 / 3),
    ]


def test_confused_labels_come_together_in_several_texts(evaluation: Evaluation) -> None:
    lists = judged(evaluation, [[1], [1], [2]], [[0.9]] * 3, [[0], [0], [0]])
    names = evaluation.vocabulary.names
    [pair] = confused_labels(lists)
    assert pair == {"missed": names[0], "suggested": names[1], "n": 2, "n_missed": 3, "n_wrong": 2}


def test_the_worst_texts_have_the_surest_mistakes(evaluation: Evaluation) -> None:
    lists = judged(
        evaluation, [[1, 2], [0, 2], [3, 1], [0, 1]], [[0.5, 0.4], [0.9, 0.8], [0.7, 0.1], [1, 0.9]], [[0]] * 4
    )
    assert worst_texts(lists) == [2, 0, 3, 1]
    assert worst_texts(judged(evaluation, [[0]], [[0.5]], [[0]])) == []


def test_the_reasons_name_words_of_the_wrong_label(model: Method, data: Dataset, evaluation: Evaluation) -> None:
    position = evaluation.vocabulary.position
    split = Split.of(["word1a word1b noise3"], [["label2"]], evaluation.vocabulary)
    found = evaluate_model(model, split)
    wrong, missed = reasons(model, found, 0)
    assert (wrong["kind"], wrong["name"]) == ("wrong", "label1")
    assert wrong["words"][0].startswith("word1")
    assert (missed["kind"], missed["name"]) == ("missed", "label2")
    assert position["label2"] in found.truth[0]


def test_the_baseline_learns_from_the_same_texts_and_its_differences_are_paired(
    report: dict[str, Any], data: Dataset, evaluation: Evaluation
) -> None:
    usual = create_method("linear").fit(data.train)
    metrics = evaluate_model(usual, data.test).metrics.values
    assert report["baseline"]["metrics"]["nDCG@5"] == pytest.approx(metrics["nDCG@5"])
    difference = report["baseline"]["difference"]["nDCG@5"]
    assert difference["value"] == pytest.approx(evaluation.metrics.values["nDCG@5"] - metrics["nDCG@5"])
    assert difference["low"] <= difference["value"] <= difference["high"]
    assert is_baseline(usual)
    assert not is_baseline(create_method("linear/fast"))


def test_the_page_and_the_markdown_say_what_was_found(report: dict[str, Any]) -> None:
    page, text = html_report(report), markdown_report(report)
    assert report["findings"]
    for sentence in report["findings"]:
        assert sentence.replace("’", "'")[:40] in text
    for title in ("In words", "Beside the linear baseline", "Precision and recall", "The worst texts"):
        assert f"<h2>{title}</h2>" in page
    assert "for which speak word" in page


def test_the_verdict_changes_with_the_figures(report: dict[str, Any]) -> None:
    worse = {"value": -0.1, "low": -0.2, "high": -0.05, "certain": True}
    unsure = {"value": 0.01, "low": -0.2, "high": 0.05, "certain": False}
    baseline = report["baseline"]

    def said(**changes: Any) -> str:
        return " ".join(findings({**report, **changes}))

    assert "It is worse than linear" in said(baseline={**baseline, "difference": {"nDCG@5": worse}})
    assert "no clear difference to linear" in said(baseline={**baseline, "difference": {"nDCG@5": unsure}})
    assert "linear" not in said(baseline=None)
    assert "reads only the beginning" in said(data={**report["data"], "share_of_cut_texts": 0.25})
    never = [{"score": 0.5, "precision": 0.4, "recall": 0.2}]
    assert "a person should look at all of them" in said(precision_recall=never)
    assert "are 20.0 % of the true labels" in said(precision_recall=[{"score": 0.5, "precision": 0.95, "recall": 0.2}])


def test_texts_that_are_cut_are_counted(data: Dataset, quick: Callable[..., dict[str, Any]]) -> None:
    pytest.importorskip("torch")
    options = quick("fasttext")
    options["encoder"] |= {"tokens": {"max_tokens": 5}}
    short = create_method("fasttext", options).fit(data.train)
    texts = Split.of(["word1a word1b", "word1a " * 9], [["label1"], ["label1"]])
    assert evaluate_model(short, texts).n_cut == 1


def test_a_card_is_yaml_and_tells_the_figures(model: Method, report: dict[str, Any], tmp_path: Path) -> None:
    model.save(tmp_path / "my-model")
    write_report(report, tmp_path / "report")
    card = model_card(
        model, tmp_path / "my-model", report=load_report(tmp_path / "report"), languages=["en"], licence="mit"
    )
    _, front, body = card.split("---\n", 2)
    facts = {key: json.loads(value) for key, value in (line.split(": ", 1) for line in front.splitlines())}
    assert (facts["library_name"], facts["pipeline_tag"]) == ("longtail", "text-classification")
    assert (facts["language"], facts["license"]) == (["en"], "mit")
    metrics = facts["model-index"][0]["results"][0]["metrics"]
    assert metrics[0] == {"type": "P@1", "name": "P@1", "value": round(report["results"]["metrics"]["P@1"], 4)}
    assert "# my-model" in body
    assert all(sentence[:30] in body for sentence in report["findings"])
    assert "n_neighbours = 5" in body
    assert "Not measured yet" in model_card(model, tmp_path / "my-model")


def test_a_folder_without_a_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there must be a report in"):
        load_report(tmp_path)
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(DataError, match="no report of this version"):
        load_report(tmp_path)
