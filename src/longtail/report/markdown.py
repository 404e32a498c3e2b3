"""The report as Markdown that also reads well as plain text."""

from __future__ import annotations

import json
from typing import Any

from longtail.report.tables import (
    band_table,
    baseline_table,
    confusion_table,
    count_table,
    label_table,
    main_length,
    model_table,
    new_table,
    overall_table,
    published_table,
    reliability_table,
    threshold_table,
    why_sentence,
)
from longtail.tables import Table, escape_markdown, markdown_lines


def markdown_report(report: dict[str, Any]) -> str:
    """Return a report without its pictures."""
    results, labels = report["results"], report["labels"]
    interval = results.get("intervals")
    sure = f" Intervals of {interval['bootstrap']['level']:.0%} by bootstrap over texts." if interval else ""
    lines = [
        f"# {escape_markdown(report['title'])}",
        "",
        f"{results['n_texts']:,} texts, in per cent.{sure} Made {report['made']}.",
        *(f"\nNote: {escape_markdown(caveat)}." for caveat in report.get("caveats", ())),
        "",
        *(f"- {escape_markdown(sentence)}" for sentence in report["findings"]),
        *_section("Results", overall_table(results)),
        *(_section("Beside the published figures", published_table(report)) if report.get("published") else ()),
        *_section("By how often a label was seen in training", band_table(results)),
    ]
    for title, table in (("Above a threshold", threshold_table(results)), ("Texts that are new", new_table(results))):
        if table is not None:
            lines += _section(title, table)
    beside = baseline_table(report)
    if beside is not None:
        lines += _section("Beside the linear baseline", beside)
    if report["reliability"]:
        title = f"Right by score, of the first {main_length(results)} suggestions"
        lines += _section(title, reliability_table(report["reliability"]))
    lines += _section("Data", count_table(report["data"]))
    if labels["best"]:
        order = f"by F1 of the first {labels['among_first']} suggestions"
        lines += _section(f"Best labels, {order}", label_table(labels["best"]))
        lines += _section(f"Worst labels, {order}", label_table(labels["worst"]))
    if labels["confused"]:
        lines += _section("Labels that are taken for each other", confusion_table(labels["confused"]))
    for title, texts in (("The worst texts", report["worst"]), ("Some texts", report["texts"])):
        lines += ["", f"## {title}", ""] if texts else []
        lines += [line for text in texts for line in _text(text)]
    lines += _section("Model", model_table(report))
    if report["model"].get("choice"):
        lines += ["", "## Why this model", "", *(f"- {escape_markdown(line)}" for line in report["model"]["choice"])]
    lines += ["", "## Options", "", "```json", json.dumps(report["model"]["options"], indent=1), "```"]
    return "\n".join(lines) + "\n"


def _text(text: dict[str, Any]) -> list[str]:
    """Return the lines of a text with its labels."""
    lines = []
    known_as = ", ".join(filter(None, (text["title"], f"id {text['id']}" if text["id"] else "")))
    place = f"text {text['number']:,}" + (f" ({known_as})" if known_as else "")
    lines.append(f"- {escape_markdown(place)}: {escape_markdown(text['text'])}")
    suggested = ", ".join(
        f"{'**' if s['right'] else ''}{escape_markdown(s['name'])}{'**' if s['right'] else ''} {s['score']:.2f}"
        for s in text["suggested"]
    )
    lines.append(f"    - suggested: {suggested or 'nothing'}")
    if text["missed"]:
        lines.append(f"    - missed: {', '.join(map(escape_markdown, text['missed']))}")
    lines += [f"    - {escape_markdown(why_sentence(why))}" for why in text.get("why", ())]
    return lines


def _section(title: str, table: Table) -> list[str]:
    return ["", f"## {title}", "", *markdown_lines(table)]
