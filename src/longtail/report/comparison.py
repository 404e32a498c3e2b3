"""A comparison of several methods as one table, as Markdown and as a page with pictures.

The table has a row a figure and a column a method: accuracy in per cent with intervals, F1 by band, gain over the
anchor, and what each method costs. The best of a row stands out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from longtail.report.comparison_pictures import N_COLOURS, cost_picture, difference_picture, grouped_picture
from longtail.report.html import document, section, table_html
from longtail.report.markdown import escaped, table_lines
from longtail.report.tables import BAND_TITLES, Table, list_lengths, main_length, percent

FAMILIES = ("P", "nDCG", "PSP", "F1")
COSTS: dict[str, tuple[str, Callable[[dict[str, Any]], float | None]]] = {
    "train_s": ("training, s", lambda costs: costs["train_s"]),
    "ms_per_text": ("prediction, ms a text", lambda costs: costs["ms_per_text"]),
    "model_bytes": ("model, MB", lambda costs: costs["model_bytes"] / 1e6),
    "peak_memory_bytes": ("peak memory in training, MB", lambda costs: _mega(costs["peak_memory_bytes"])),
    "gpu_peak_bytes": ("peak GPU memory in training, MB", lambda costs: _mega(costs["gpu_peak_bytes"])),
}
"""What a method takes, its name, and how the number is read from the costs of a run."""


def comparison_table(comparison: dict[str, Any], intervals: bool = True) -> Table:
    """The one table; without `intervals` its cells are narrow."""
    runs = comparison["runs"]
    rows: list[list[str]] = []
    best: set[tuple[int, int]] = set()
    for title, values, cells, lower in _rows(comparison, intervals):
        known = [value for value in values if value is not None]
        if known:
            target = min(known) if lower else max(known)
            if lower is not None and len(known) > 1:
                best |= {(len(rows), column) for column, value in enumerate(values, 1) if value == target}
            rows.append([title, *cells])
    head = [run["name"] + (" (failed)" if run["error"] else "") for run in runs]
    return Table(["", *head], rows, frozenset(best))


def sentences(comparison: dict[str, Any]) -> list[str]:
    """What must be said beside the table."""
    told = [f"{run['name']} failed: {run['error']}" for run in comparison["runs"] if run["error"]]
    done = _done(comparison)
    again = [run["name"] for run in done if run["costs"]["sittings"] > 1]
    if again:
        told.append(f"trained in several sittings, whose times are added up: {', '.join(again)}")
    for what, key in (("machines", "machine"), ("numbers of threads", "threads")):
        if len({run["costs"][key] for run in done}) > 1:
            told.append(f"times were measured with different {what} and cannot be compared")
    return told


def legend(comparison: dict[str, Any]) -> str:
    """How the figures are to be read."""
    bootstrap = comparison["bootstrap"]
    told = f"In per cent, {bootstrap['level']:.0%} intervals by bootstrap over the texts."
    if _beside(comparison):
        told += (
            f" Gain: difference to {comparison['relative_to']} in per cent of its figure; the interval is that of the "
            "difference, paired text by text, and * says that it excludes 0."
        )
    return told


def markdown_comparison(comparison: dict[str, Any]) -> str:
    """All of a comparison but its pictures."""
    lines = [
        f"# {escaped(comparison['title'])}",
        "",
        f"{escaped(_about(comparison))}. {escaped(legend(comparison))}",
        "",
    ]
    lines += table_lines(comparison_table(comparison))
    lines += ["", *(f"- {escaped(told)}" for told in sentences(comparison))]
    lines += ["", "## Options that differ from the defaults", ""]
    for run in comparison["runs"]:
        changed = ", ".join(f"`{path} = {json.dumps(value)}`" for path, value in run["changed_options"].items())
        lines.append(f"- {escaped(run['name'])} ({run['method']}): {changed or 'none'}")
    return "\n".join(lines).rstrip() + "\n"


def html_comparison(comparison: dict[str, Any]) -> str:
    """The whole page."""
    runs = [{**run, "colour": number % N_COLOURS} for number, run in enumerate(comparison["runs"])]
    comparison = comparison | {"runs": runs}
    done, anchor = _done(comparison), comparison["relative_to"]
    notes = "".join(f"<li>{escape(told)}</li>" for told in sentences(comparison))
    sections = []
    if done:
        k = main_length(done[0]["results"])
        metric = f"nDCG@{k}"
        figures = "".join(
            f"<figure>{cost_picture(done, cost, metric)}<figcaption>{metric} against {caption}: up and to the left is "
            "better.</figcaption></figure>"
            for cost, caption in (("train_s", "training time"), ("ms_per_text", "time to tag a text"))
        )
        sections += [
            section("All figures", table_html(comparison_table(comparison)), escape(legend(comparison))),
            section("What it costs", f'<div class="pair">{figures}</div>'),
            section(
                "Frequent and rare labels",
                f"<figure>{grouped_picture(done, f'F1@{k}')}<figcaption>F1@{k} by how many training texts a label has: "
                "head more than 100, torso 11 to 100, tail 1 to 10.</figcaption></figure>",
            ),
        ]
        beside = _beside(comparison)
        if beside:
            names = [f"P@{list_lengths(done[0]['results'])[0]}", metric, f"PSP@{k}"]
            sections.append(
                section(
                    f"Beside {escape(anchor)}",
                    f"<figure>{difference_picture(beside, names)}<figcaption>Difference in points, with the paired "
                    "interval. Where it does not touch the line, one of the two is better.</figcaption></figure>",
                )
            )
        for family in FAMILIES[:3]:
            told = f"{family}@{k} by how many training texts a label has"
            sections.append(section(told, table_html(_band_table(done, f"{family}@{k}"))))
    sections.append(section("Runs", (f"<ul>{notes}</ul>" if notes else "") + "".join(map(_run, comparison["runs"]))))
    return document(comparison, comparison["data"]["name"], escape(_about(comparison)), sections)


def _rows(
    comparison: dict[str, Any], intervals: bool
) -> Iterator[tuple[str, list[float | None], list[str], bool | None]]:
    """Title, values, cells, and whether less is better (None: nothing stands out) of each row."""
    runs, done = comparison["runs"], _done(comparison)
    if not done:
        return
    for name in _metrics(done[0]["results"]):
        yield name, *_figures(runs, "", name, intervals), False
    k = main_length(done[0]["results"])
    for band, told in BAND_TITLES.items():
        yield f"F1@{k}, {told.split(',')[0]} labels", *_figures(runs, band, f"F1@{k}", intervals), False
    if _beside(comparison):
        for name in _gained(done[0]["results"]):
            yield f"gain in {name}, %", *_gains(comparison, name, intervals), None
    for title, read in COSTS.values():
        values = [None if run["error"] else read(run["costs"]) for run in runs]
        yield title, values, ["–" if value is None else _short(value) for value in values], True


def _figures(runs: list[Any], band: str, name: str, intervals: bool) -> tuple[list[float | None], list[str]]:
    values: list[float | None] = []
    cells = []
    for run in runs:
        results = {} if run["error"] else run["results"]
        own = results.get("bands", {}).get(band, {}) if band else results.get("metrics", {})
        drawn = results.get("intervals", {})
        drawn = drawn.get("bands", {}).get(band, {}) if band else drawn.get("metrics", {})
        values.append(own.get(name))
        cells.append("–" if name not in own else percent(own[name]))
        if intervals and name in own:
            cells[-1] += f" ({percent(drawn[name]['low'])}–{percent(drawn[name]['high'])})"
    return values, cells


def _gains(comparison: dict[str, Any], name: str, intervals: bool) -> tuple[list[float | None], list[str]]:
    values: list[float | None] = []
    cells = []
    for run in comparison["runs"]:
        told = run.get("difference", {}).get("metrics", {}).get(name)
        gain = told["gain"] if told else None
        values.append(gain)
        cells.append("anchor" if run["name"] == comparison["relative_to"] else "–")
        if told and gain is not None:
            cells[-1] = f"{100 * gain:+.1f}{'*' if told['excludes_zero'] else ''}"
            if intervals:
                cells[-1] += (
                    f" ({100 * told['low'] / told['anchor']:+.1f} to {100 * told['high'] / told['anchor']:+.1f})"
                )
    return values, cells


def _band_table(done: list[Any], name: str) -> Table:
    bands = [band for band in BAND_TITLES if any(band in run["results"]["bands"] for run in done)]
    columns = [_figures(done, band, name, True) for band in bands]
    rows = [[run["name"], *(cells[row] for _, cells in columns)] for row, run in enumerate(done)]
    best = set()
    for column, (values, _) in enumerate(columns, 1):
        known = [value for value in values if value is not None]
        best |= {(row, column) for row, value in enumerate(values) if len(known) > 1 and value == max(known)}
    return Table(["", *(BAND_TITLES[band] for band in bands)], rows, frozenset(best))


def _metrics(results: dict[str, Any]) -> list[str]:
    """P, nDCG and PSP at all lengths, F1 at one; nDCG@1 is P@1."""
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


def _mega(n_bytes: int | None) -> float | None:
    return n_bytes / 1e6 if n_bytes else None


def _short(value: float) -> str:
    """Three digits or more."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
