"""A comparison of several methods as one table, as Markdown and as a page with pictures.

The table has one row per figure and one column per method: accuracy in per cent with intervals, F1 by band, gain
over the anchor, and what each method costs. The best value of a row is emphasised.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Any, NamedTuple

from longtail.report.comparison_pictures import N_COLOURS, band_picture, cost_picture, gain_picture
from longtail.report.html import document, figures_html, list_html, section, table_html
from longtail.report.tables import BAND_TITLES, gain, gain_text, list_lengths, main_length, with_interval
from longtail.report.verdict import verdict
from longtail.tables import Table, escape_markdown, markdown_lines

FAMILIES = ("P", "nDCG", "PSP", "F1")
COSTS = {
    "train_s": ("training, s", 1.0),
    "ms_per_text": ("prediction, ms per text", 1.0),
    "model_bytes": ("model, MB", 1e6),
    "peak_memory_bytes": ("peak memory in training, MB", 1e6),
    "gpu_peak_bytes": ("peak GPU memory in training, MB", 1e6),
}
"""A cost of a run, its title, and the unit it is shown in."""


class _Row(NamedTuple):
    title: str
    values: list[float | None]
    cells: list[str]
    best: Callable[[Iterable[float]], float] | None = None
    """`min` or `max`; None where nothing is emphasised."""

    def emphasised(self) -> list[int]:
        """Return the columns with the best value, if there are several values."""
        known = [value for value in self.values if value is not None]
        if self.best is None or len(known) < 2:
            return []
        best = self.best(known)
        return [column for column, value in enumerate(self.values) if value == best]


def comparison_table(comparison: dict[str, Any], intervals: bool = True) -> Table:
    """Return the one table; without `intervals` its cells are narrow."""
    rows = [row for row in _rows(comparison, intervals) if any(value is not None for value in row.values)]
    best = {(number, column + 1) for number, row in enumerate(rows) for column in row.emphasised()}
    head = [run["name"] + (" (failed)" if run["error"] else "") for run in comparison["runs"]]
    return Table(["", *head], [[row.title, *row.cells] for row in rows], frozenset(best))


def sentences(comparison: dict[str, Any]) -> list[str]:
    """Return what a reader must know beside the table."""
    notes = [f"{run['name']} failed: {run['error']}" for run in comparison["runs"] if run["error"]]
    done = _done(comparison)
    again = [run["name"] for run in done if run["costs"]["sittings"] > 1]
    if again:
        notes.append(f"trained in several sittings, whose times are added up: {', '.join(again)}")
    for what, key in (("machines", "machine"), ("numbers of threads", "threads")):
        if len({run["costs"][key] for run in done}) > 1:
            notes.append(f"times were measured with different {what} and cannot be compared")
    return notes


def legend(comparison: dict[str, Any]) -> str:
    """Return how to read the figures."""
    bootstrap = comparison["bootstrap"]
    text = f"In per cent, {bootstrap['level']:.0%} intervals by bootstrap over the texts."
    if _beside(comparison):
        text += (
            f" Gain: difference to {comparison['relative_to']} in per cent of its figure; the interval is that of the "
            "difference, paired text by text, and * says that it excludes 0."
        )
    return text


def markdown_comparison(comparison: dict[str, Any]) -> str:
    """Return a comparison without its pictures."""
    lines = [
        f"# {escape_markdown(comparison['title'])}",
        "",
        escape_markdown(f"{_about(comparison)}."),
        "",
        *(f"- {escape_markdown(sentence)}" for sentence in verdict(comparison)),
        *("", escape_markdown(legend(comparison)), ""),
        *markdown_lines(comparison_table(comparison)),
        "",
        *(f"- {escape_markdown(note)}" for note in sentences(comparison)),
        *("", "## Options that differ from the defaults", ""),
    ]
    for run in comparison["runs"]:
        changed = ", ".join(f"`{path} = {json.dumps(value)}`" for path, value in run["changed_options"].items())
        lines.append(f"- {escape_markdown(run['name'])} ({run['method']}): {changed or 'none'}")
    return "\n".join(lines).rstrip() + "\n"


def html_comparison(comparison: dict[str, Any]) -> str:
    """Return the page of a comparison."""
    runs = [{**run, "colour": number % N_COLOURS} for number, run in enumerate(comparison["runs"])]
    comparison = comparison | {"runs": runs}
    done, anchor = _done(comparison), comparison["relative_to"]
    sections = []
    if done:
        sections += [section("In words", list_html(verdict(comparison)))] if len(done) > 1 else []
        table = table_html(comparison_table(comparison), kind="figures")
        sections += [section("All figures", table, escape(legend(comparison))), *_pictures(done, anchor)]
        k = main_length(done[0]["results"])
        for family in FAMILIES[:3]:
            title = f"{family}@{k} by how many training texts a label has"
            sections.append(section(title, table_html(_band_table(done, f"{family}@{k}"))))
    sections.append(section("Runs", list_html(sentences(comparison)) + "".join(map(_run, comparison["runs"]))))
    return document(comparison, comparison["data"]["name"], escape(_about(comparison)), sections)


def _pictures(done: list[Any], anchor: str) -> list[str]:
    """Return the sections of pictures."""
    k = main_length(done[0]["results"])
    metric = f"nDCG@{k}"
    costs = {"train_s": "training time", "ms_per_text": "the time to tag a text"}
    by_cost = [(cost_picture(done, cost, metric), f"{metric} against {title}") for cost, title in costs.items()]
    by_band = []
    for band, title in BAND_TITLES.items():
        present = [run for run in done if band in run["results"]["bands"]]
        by_band += [(band_picture(present, f"F1@{k}", band), f"Labels of the {title}")] if present else []
    sections = [
        section("What it costs", figures_html(by_cost), "Up and to the left is better."),
        section(
            "Frequent and rare labels",
            figures_html(by_band),
            f"F1@{k} of labels by how many training texts they have.",
        ),
    ]
    gains = []
    for name in (f"P@{list_lengths(done[0]['results'])[0]}", metric, f"PSP@{k}"):
        gained = [
            run for run in done if run.get("difference", {}).get("metrics", {}).get(name, {}).get("gain") is not None
        ]
        gains += [(gain_picture(gained, name, anchor), f"Gain in {name}")] if gained else []
    if gains:
        note = "With paired intervals: where one does not touch the line at 0, one of the two methods is better."
        sections.append(section(f"Beside {escape(anchor)}", figures_html(gains), note))
    return sections


def _rows(comparison: dict[str, Any], intervals: bool) -> Iterator[_Row]:
    """Yield the rows of the table; a cost of 0 is one that was not measured."""
    runs, done = comparison["runs"], _done(comparison)
    if not done:
        return
    for name in _metrics(done[0]["results"]):
        yield _figures(name, runs, "", name, intervals)
    k = main_length(done[0]["results"])
    for band, title in BAND_TITLES.items():
        yield _figures(f"F1@{k}, {title.split(',')[0]} labels", runs, band, f"F1@{k}", intervals)
    if _beside(comparison):
        for name in _gained(done[0]["results"]):
            yield _gains(comparison, name, intervals)
    for cost, (title, unit) in COSTS.items():
        spent = [None if run["error"] else run["costs"][cost] for run in runs]
        values = [value / unit if value else None for value in spent]
        yield _Row(title, values, ["–" if value is None else _short(value) for value in values], min)


def _figures(title: str, runs: list[Any], band: str, name: str, intervals: bool) -> _Row:
    """Return the row of a metric, over all labels or, if `band` is not empty, over those of a band."""
    values: list[float | None] = []
    cells = []
    for run in runs:
        results = {} if run["error"] else run["results"]
        measured, drawn = (
            each.get("bands", {}).get(band, {}) if band else each.get("metrics", {})
            for each in (results, results.get("intervals", {}))
        )
        values.append(measured.get(name))
        interval = drawn[name] if intervals and name in measured else None
        cells.append(with_interval(measured[name], interval) if name in measured else "–")
    return _Row(title, values, cells, max)


def _gains(comparison: dict[str, Any], name: str, intervals: bool) -> _Row:
    """Return the row of gains over the anchor in a metric."""
    values: list[float | None] = []
    cells = []
    for run in comparison["runs"]:
        difference = run.get("difference", {}).get("metrics", {}).get(name)
        values.append(difference["gain"] if difference else None)
        cells.append("anchor" if run["name"] == comparison["relative_to"] else "–")
        if difference and difference["gain"] is not None:
            whole = gain_text(gain(difference), "*" if difference["excludes_zero"] else "")
            cells[-1] = whole if intervals else whole.partition(" ")[0]
    return _Row(f"gain in {name}, %", values, cells)


def _band_table(done: list[Any], name: str) -> Table:
    """Return a metric by band, one row per method."""
    bands = [band for band in BAND_TITLES if any(band in run["results"]["bands"] for run in done)]
    columns = [_figures(BAND_TITLES[band], done, band, name, True) for band in bands]
    rows = [[run["name"], *(column.cells[row] for column in columns)] for row, run in enumerate(done)]
    best = {(row, number) for number, column in enumerate(columns, 1) for row in column.emphasised()}
    return Table(["", *(column.title for column in columns)], rows, frozenset(best))


def _metrics(results: dict[str, Any]) -> list[str]:
    """Return the names of P, nDCG and PSP at all lengths, and of F1 at one; nDCG@1 is P@1 and left out."""
    k = main_length(results)
    wanted = [f"{family}@{n}" for family in FAMILIES[:3] for n in list_lengths(results)]
    wanted = [name for name in (*wanted, f"F1@{k}") if name != "nDCG@1"]
    return [known for name in wanted for known in results["metrics"] if known.split(" ")[0] == name]


def _gained(results: dict[str, Any]) -> list[str]:
    lengths = list_lengths(results)
    return list(dict.fromkeys(f"{family}@{k}" for family in ("P", "PSP") for k in (lengths[0], lengths[-1])))


def _done(comparison: dict[str, Any]) -> list[Any]:
    return [run for run in comparison["runs"] if not run["error"]]


def _beside(comparison: dict[str, Any]) -> list[Any]:
    return [run for run in comparison["runs"] if "difference" in run]


def _about(comparison: dict[str, Any]) -> str:
    data = comparison["data"]
    return (
        f"{data['n_texts']:,} texts of {data['split']}, {data['n_train_texts']:,} training texts, "
        f"{data['n_labels']:,} labels"
    )


def _run(run: dict[str, Any]) -> str:
    changed = "".join(
        f"<li><code>{escape(path)} = {escape(json.dumps(value, ensure_ascii=False))}</code></li>"
        for path, value in run["changed_options"].items()
    )
    options = escape(json.dumps(run["options"], indent=1, ensure_ascii=False))
    inside = f"<ul>{changed}</ul>" if changed else "<p>All options have their defaults.</p>"
    place = f"<p>{escape(run['model'])}</p>" if run["model"] else ""
    return (
        f"<h3>{escape(run['name'])}</h3><p>{escape(run['error'] or run['method'])}</p>{place}{inside}"
        f"<details><summary>All options</summary><pre>{options}</pre></details>"
    )


def _short(value: float) -> str:
    """Return a number with three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
