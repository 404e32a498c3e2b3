"""The report: plain data, Markdown and a page that needs nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from longtail.data.dataset import Dataset, Split
from longtail.errors import LongtailError
from longtail.evaluation import evaluate_model
from longtail.methods import create_method
from longtail.metrics import BootstrapOptions, MetricOptions
from longtail.propensity import Propensity
from longtail.report import html_report, make_report, markdown_report, write_report
from longtail.report.contents import changed_options
from longtail.report.pictures import RELIABILITY, reliability_picture
from tests.drawn import labels_of

NASTY = '<script>alert("1")</script> & | pipes'


@pytest.fixture(scope="module")
def report(tiny: Callable[..., Dataset], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    data = tiny()
    model = create_method("linear", {"n_seeds": 2, "search": {"beam": 9}}).fit(data.train)
    folder = tmp_path_factory.mktemp("report") / "m"
    model.save(folder)
    texts = [*data.test.texts["text"].to_pylist(), NASTY, ""]
    labels = [*(data.test.label_names(row) for row in range(len(data.test))), [NASTY], []]
    found = evaluate_model(model, Split.of(texts, labels), bootstrap=BootstrapOptions(n_resamples=50), seen=data.train)
    return make_report(model, found, NASTY, "test", folder)


class Page(HTMLParser):
    """Tags that are open, texts, and addresses."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "wbr"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_report_is_plain_data_and_complete(report: dict[str, Any]) -> None:
    again = json.loads(json.dumps(report))
    assert again == report
    assert report["model"]["kind"] == "ensemble of 2"
    assert report["model"]["changed_options"] == {"n_seeds": 2, "search.beam": 9}
    assert report["model"]["bytes"] > 0
    assert report["data"]["n_unknown_labels"] == 1
    assert report["data"]["n_texts_without_labels"] == 1
    assert report["results"]["n_texts"] == 61
    assert report["environment"]["longtail"]
    assert report["data"]["label_frequency"][0][1] >= report["data"]["label_frequency"][-1][1]


def test_best_and_worst_labels_are_told_by_their_hits(report: dict[str, Any]) -> None:
    best, worst = report["labels"]["best"], report["labels"]["worst"]
    assert best[0]["f1"] >= best[-1]["f1"] >= worst[-1]["f1"] >= worst[0]["f1"]
    assert worst[0]["name"] == NASTY
    assert worst[0]["n_right"] == 0


def test_sample_texts_show_what_is_right_and_what_is_missed(report: dict[str, Any]) -> None:
    assert len(report["texts"]) == 10
    for text in report["texts"]:
        names = [label["name"] for label in text["suggested"]]
        assert len(names) == 5
        assert not set(names) & set(text["missed"])
    assert any(label["right"] for text in report["texts"] for label in text["suggested"])


def test_cards_show_title_id_and_scores_of_a_record(tiny: Callable[..., Dataset]) -> None:
    data = tiny()
    texts = data.test.texts.append_column("id", [[f"id-{row}" for row in range(len(data.test))]])
    texts = texts.append_column("title", [[NASTY] * len(data.test)])
    model = create_method("linear").fit(data.train)
    made = make_report(model, evaluate_model(model, replace(data.test, texts=texts)), "d", "test")
    first = made["texts"][0]
    assert (first["id"], first["title"]) == (f"id-{first['number'] - 1}", NASTY)
    shown = Page(html_report(made)).texts
    assert shown.count(NASTY) == 15  # ten drawn, and the five worst
    assert f"id {first['id']}, text {first['number']}" in shown
    assert f"{first['suggested'][0]['score']:.2f}" in shown
    line = next(line for line in markdown_report(made).splitlines() if line.startswith(f"- text {first['number']} ("))
    assert f", id {first['id']}): " in line


def test_a_card_of_a_record_without_a_title_is_known_by_its_number(report: dict[str, Any]) -> None:
    first = report["texts"][0]
    assert (first["id"], first["title"]) == ("", "")
    assert f"text {first['number']}" in Page(html_report(report)).texts


def test_no_label_of_a_picture_is_clipped(report: dict[str, Any]) -> None:
    labels = [*labels_of(html_report(report))]
    titles = {"R@5, per cent", "training texts", "labels, most frequent first", "score", "right, per cent"}
    assert titles <= {label.words for label in labels}
    assert [label for label in labels if not label.inside] == []


def test_the_picture_of_scores_shows_how_many_are_right_in_each_bin(report: dict[str, Any]) -> None:
    bins, results = report["reliability"], report["results"]["metrics"]
    n = sum(each["n"] for each in bins)
    assert n == 5 * 61  # full lists
    assert sum(each["n"] * each["right"] for each in bins) / n == pytest.approx(results["P@5"])
    gaps = [each["n"] * abs(each["mean_score"] - each["right"]) for each in bins]
    assert sum(gaps) / n == pytest.approx(results["ECE@5"])
    picture = reliability_picture([dict(low=0.2, high=0.4, n=1_000_000, mean_score=0.25, right=0.5)])
    frame = RELIABILITY
    x, y = frame.left + 0.25 * (frame.end - frame.left), (frame.top + frame.floor) / 2
    assert f'cx="{x:.1f}" cy="{y:.1f}"' in picture
    labels = [*labels_of(picture)]
    assert "labels by score, at most 1,000,000" in {label.words for label in labels}
    assert [label for label in labels if not label.inside] == []


def test_scores_that_are_no_probabilities_have_no_picture(report: dict[str, Any]) -> None:
    without = report | {"reliability": []}
    assert "Scores as probabilities" not in html_report(without)
    assert "Right by score" not in markdown_report(without)
    assert "Right by score" in markdown_report(report)


def test_the_page_is_one_well_formed_file(report: dict[str, Any]) -> None:
    page = Page(html_report(report))
    assert page.open == []
    assert page.addresses == []
    assert "script" not in page.tags
    assert "svg" in page.tags
    shown = " ".join(page.texts)
    assert NASTY in shown
    for part in (
        "Results",
        "Frequent and rare labels",
        "Texts that are new",
        "Scores as probabilities",
        "Data",
        "Labels",
        "Some texts",
        "Model",
    ):
        assert part in page.texts
    assert "url(" not in shown
    assert "prefers-color-scheme: dark" in shown


def test_markdown_tables_are_even_and_hold_no_tags(report: dict[str, Any]) -> None:
    text = markdown_report(report)
    assert "<script" not in text
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    assert len(tables) >= 6
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1
    value = report["results"]["metrics"]["P@1"]
    assert f"| {100 * value:.1f} (" in text


def test_all_files_are_written(report: dict[str, Any], tmp_path: Path) -> None:
    files = write_report(report, tmp_path / "deep" / "folder")
    assert set(files) == {"report.json", "report.md", "report.html"}
    assert json.loads(files["report.json"].read_text()) == report
    (tmp_path / "file").write_text("")
    with pytest.raises(LongtailError, match="cannot write the report"):
        write_report(report, tmp_path / "file")


def test_other_lengths_no_intervals_and_two_propensities_are_shown_too(tiny: Callable[..., Dataset]) -> None:
    data = tiny(n_labels=2)
    model = create_method("linear").fit(data.train)
    options = MetricOptions(at=(2, 100), threshold=0.3, propensities=(Propensity(), Propensity(a=0.6, b=2.6)))
    made = make_report(model, evaluate_model(model, data.test, options), "d", "test")
    text = markdown_report(made)
    assert "k = 100" in text
    assert "PSP@k (a=0.6, b=2.6)" in text
    assert "R@100" in text
    assert Page(html_report(made)).open == []


def test_changed_options_are_named_by_their_path() -> None:
    usual = {"a": 1, "b": {"c": 2, "d": [1]}}
    assert changed_options({"a": 1, "b": {"c": 3, "d": [1, 2]}}, usual) == {"b.c": 3, "b.d": [1, 2]}
    assert changed_options(usual, usual) == {}
