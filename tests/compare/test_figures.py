"""The figures of a comparison, and how they are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.compare import ComparedData, Costs, Entry, RunResult, make_comparison
from longtail.data.dataset import Dataset
from longtail.methods import create_method
from longtail.metrics import BootstrapOptions, MetricOptions, evaluate, intervals
from longtail.report import html_comparison, markdown_comparison, write_comparison
from longtail.report.comparison import comparison_table, legend, sentences
from longtail.report.comparison_pictures import cost_picture
from longtail.report.pictures import CHARACTER
from longtail.report.verdict import verdict
from tests.drawn import labels_of

NASTY = '<b>"nasty"</b> | name'
OPTIONS, DRAWS = MetricOptions(), BootstrapOptions(n_resamples=50)


def left_by(model: Any, data: Dataset, **costs: Any) -> RunResult:
    taken = {"train_s": 1.5, "sittings": 1, "peak_memory_bytes": 200_000_000, "gpu_peak_bytes": 0}
    taken |= {"threads": 2, "machine": "one"} | costs
    return RunResult(model.top_k(data.dev, 5), 0.06, 2, Costs.of(taken), 5_000_000)


def compare(
    data: ComparedData, entries: list[Entry], results: dict[str, RunResult | str], anchor: str
) -> dict[str, Any]:
    return make_comparison(data, entries, results, anchor=anchor, options=OPTIONS, bootstrap=DRAWS)


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=120, splits=("train", "dev"))


@pytest.fixture(scope="module")
def found(data: Dataset) -> dict[str, RunResult | str]:
    good = create_method("linear").fit(data.train)
    poor = create_method("linear", {"ranker": {"threshold": 5.0}}).fit(data.train)
    return {"good": left_by(good, data), "poor": left_by(poor, data, train_s=120.0), NASTY: "it broke <here>"}


@pytest.fixture(scope="module")
def made(data: Dataset, found: dict[str, RunResult | str]) -> dict[str, Any]:
    entries = [Entry(name, create_method("linear", {"seed": number})) for number, name in enumerate(found)]
    return compare(ComparedData(data, "dev", data.dev), entries, found, "poor")


def test_figures_are_those_of_the_metrics_over_the_same_texts(
    made: dict[str, Any], data: Dataset, found: dict[str, RunResult | str]
) -> None:
    good, poor = (found[name].lists for name in ("good", "poor"))  # type: ignore[union-attr]
    counts = data.train.labels.texts_per_label()
    given = data.dev.labels, counts, len(data.train), OPTIONS
    run = made["runs"][0]
    assert run["results"]["metrics"] == evaluate(good, *given).values
    assert run["results"]["intervals"]["metrics"] == intervals(good, *given, DRAWS).plain()["metrics"]
    apart = intervals(good, *given, DRAWS, minus=poor)
    for name, told in run["difference"]["metrics"].items():
        assert (told["value"], told["low"], told["high"]) == (
            apart.values[name].value,
            apart.values[name].low,
            apart.values[name].high,
        )
        assert told["excludes_zero"] == apart.values[name].excludes_zero
    own, anchor = run["results"]["metrics"]["P@1"], made["runs"][1]["results"]["metrics"]["P@1"]
    assert run["difference"]["metrics"]["P@1"]["gain"] == pytest.approx((own - anchor) / anchor)
    assert "difference" not in made["runs"][1]
    assert run["costs"]["ms_per_text"] == pytest.approx(0.5)
    assert json.loads(json.dumps(made)) == made


def test_labels_without_training_texts_are_missed_by_all(tiny: Callable[..., Dataset]) -> None:
    data = tiny(splits=("train", "dev"))
    has = [row for row in range(len(data.train)) if 2 not in data.train.labels[row]]
    narrow = Dataset("narrow", {"train": data.train.take(np.array(has)), "dev": data.dev}, data.vocabulary)
    model = create_method("linear").fit(narrow.train)
    entry = Entry("linear", create_method("linear"))
    made = compare(ComparedData(narrow, "dev", data.dev), [entry], {"linear": left_by(model, data)}, "linear")
    assert made["data"]["n_labels"] == 7
    assert made["runs"][0]["results"]["bands"]["unseen"]["R@5"] == 0


def test_the_table_has_a_column_a_method_and_the_best_of_a_row_stands_out(made: dict[str, Any]) -> None:
    table = comparison_table(made)
    titles = [row[0] for row in table.rows]
    assert table.head == ["", "good", "poor", f"{NASTY} (failed)"]
    assert titles[:4] == ["P@1", "P@3", "P@5", "nDCG@3"]
    assert {"PSP@1", "F1@5", "F1@5, torso labels", "gain in P@1, %", "training, s", "model, MB"} <= set(titles)
    assert "peak GPU memory in training, MB" not in titles
    first = table.rows[0]
    assert re.fullmatch(r"\d+\.\d \(\d+\.\d–\d+\.\d\)", first[1])
    assert first[3] == "–"
    assert {(0, 1), (titles.index("training, s"), 1)} <= table.best
    assert (0, 2) not in table.best
    gain = table.rows[titles.index("gain in P@1, %")]
    assert re.fullmatch(r"\+\d+\.\d\* \(\+\d+\.\d to \+\d+\.\d\)", gain[1])
    assert gain[2:] == ["anchor", "–"]
    assert not any(row == titles.index("gain in P@1, %") for row, _ in table.best)
    narrow = comparison_table(made, intervals=False)
    assert "(" not in "".join(cell for row in narrow.rows for cell in row[1:])


def test_what_must_be_known_is_said(made: dict[str, Any], data: Dataset, found: dict[str, RunResult | str]) -> None:
    assert sentences(made) == [f"{NASTY} failed: it broke <here>"]
    assert "* says that it excludes 0" in legend(made)
    model = create_method("linear").fit(data.train)
    mixed = {"a": left_by(model, data, sittings=2, threads=1), "b": left_by(model, data, machine="two")}
    entries = [Entry(name, create_method("linear")) for name in mixed]
    told = sentences(compare(ComparedData(data, "dev", data.dev), entries, mixed, "a"))
    assert told == [
        "trained in several sittings, whose times are added up: a",
        "times were measured with different machines and cannot be compared",
        "times were measured with different numbers of threads and cannot be compared",
    ]


def test_the_verdict_comes_first_and_in_words(made: dict[str, Any], data: Dataset) -> None:
    best, beside, rare, costs = verdict(made)
    assert re.fullmatch(r"good has the highest nDCG@5: \d+\.\d \(\d+\.\d–\d+\.\d\)\.", best)
    assert re.fullmatch(r"Gain over poor in nDCG@5 – better: good \(\+\d+\.\d %\)\.", beside)
    assert re.fullmatch(r"On rare labels \(torso, 11 to 100 training texts\) good is best: F1@5 \d+\.\d\.", rare)
    assert costs == "good trains fastest (1.5 s) and tags fastest (0.5 ms per text) and is the smallest (5 MB)."
    page, text = html_comparison(made), markdown_comparison(made)
    assert page.index(best) < page.index("<table")
    assert text.index(best) < text.index("| P@1 ")
    model = create_method("linear").fit(data.train)
    entries = [Entry(name, create_method("linear")) for name in ("one", "two")]
    same = compare(
        ComparedData(data, "dev", data.dev), entries, dict.fromkeys(("one", "two"), left_by(model, data)), "one"
    )
    assert verdict(same)[1] == "Gain over one in nDCG@5 – no clear difference: two (+0.0 %)."
    alone = compare(ComparedData(data, "dev", data.dev), entries[:1], {"one": left_by(model, data)}, "one")
    assert verdict(alone) == []


def test_gains_are_in_per_cent_everywhere(made: dict[str, Any]) -> None:
    table = comparison_table(made)
    [row] = [row for row in table.rows if row[0] == "gain in PSP@5, %"]
    page = html_comparison(made)
    drawn = [label.words for label in labels_of(page)]
    assert row[1].replace("*", "") in drawn
    assert drawn.count("gain over poor, per cent") == 3
    assert "in points" not in page


@pytest.mark.parametrize(
    "name", ["x", "a very long name of a method that somebody gave it " * 2, "lightxml/wiki10-31k"]
)
def test_no_label_of_a_picture_is_clipped(data: Dataset, found: dict[str, RunResult | str], name: str) -> None:
    names = [f"{number}{name}" for number in range(6)]
    entries = [Entry(each, create_method("linear")) for each in names]
    good, poor = found["good"], found["poor"]
    results = {each: poor if number == 3 else good for number, each in enumerate(names)}
    page = html_comparison(compare(ComparedData(data, "dev", data.dev), entries, results, names[3]))
    labels = [*labels_of(page)]
    assert [label for label in labels if not label.inside] == []
    titles = [label.words for label in labels]
    assert {"training, s", "ms per text", "nDCG@5, per cent", "F1@5, per cent"} <= set(titles)
    assert '<th scope="row">P@1</th>' in page


def test_a_name_that_finds_no_room_beside_its_point_has_a_line_to_it() -> None:
    interval = {"nDCG@5": {"value": 0.7, "low": 0.7, "high": 0.7}}
    results = {"intervals": {"metrics": interval}}
    names = [f"method {number}" for number in range(5)]
    runs = [{"name": name, "colour": 0, "costs": {"train_s": 1.0}, "results": results} for name in names]
    picture = cost_picture(runs, "train_s", "nDCG@5")
    (at,) = {float(place) for place in re.findall(r'<circle[^>]* cx="([\d.]+)"', picture)}
    starts = [float(place) for place in re.findall(r'<text class="name" x="([\d.]+)"', picture)]
    heights = {float(place) - 4 for place in re.findall(r'<text class="name" x="[\d.]+" y="([\d.]+)"', picture)}
    assert len(starts) == 5
    assert len(heights) > 1
    width = len(names[0]) * CHARACTER
    beside = sum(abs(start - at) < 15 or abs(start + width - at) < 15 for start in starts)
    assert picture.count('class="leader"') >= 5 - beside


def test_files_are_complete_and_need_nothing_else(made: dict[str, Any], tmp_path: Path) -> None:
    files = write_comparison(made, tmp_path)
    assert sorted(files) == ["compare.html", "compare.json", "compare.md"]
    assert json.loads(files["compare.json"].read_text()) == made
    text = markdown_comparison(made)
    assert "| P@1 " in text
    assert "**" in text
    assert "- poor (linear): `seed = 1`" in text
    assert "<b>" not in text
    page = html_comparison(made)
    assert "<b>&quot;" not in page
    assert NASTY not in page
    assert not re.search(r"(src|href)=", page)
    n_bands = len(made["runs"][0]["results"]["bands"])
    assert page.count("<svg") == 2 + n_bands + 3
    assert not re.search(r"nan|inf\"|-inf", page.partition("<section>")[2].partition("Options")[0])


@pytest.mark.parametrize("anchor", ["good", "bad"])
def test_a_comparison_without_its_anchor_or_without_any_run_is_shown_all_the_same(data: Dataset, anchor: str) -> None:
    model = create_method("linear").fit(data.train)
    found: dict[str, RunResult | str] = {"good": left_by(model, data) if anchor == "bad" else "broke", "bad": "broke"}
    entries = [Entry(name, create_method("linear")) for name in found]
    made = compare(ComparedData(data, "dev", data.dev), entries, found, anchor)
    table = comparison_table(made)
    assert not [row for row in table.rows if row[0].startswith("gain")]
    assert bool(table.rows) == (anchor == "bad")
    assert "bad failed: broke" in markdown_comparison(made)
    assert "</html>" in html_comparison(made)
