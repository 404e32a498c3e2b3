"""The report as Markdown that also reads well as plain text."""

from __future__ import annotations

import json
from typing import Any

from longtail.report.tables import (
    Table,
    band_table,
    count_table,
    label_table,
    model_table,
    new_table,
    overall_table,
)


def markdown_report(report: dict[str, Any]) -> str:
    """All of a report but its pictures."""
    results, labels = report["results"], report["labels"]
    interval = results.get("intervals")
    sure = f" Intervals of {interval['bootstrap']['level']:.0%} by bootstrap over texts." if interval else ""
    lines = [
        f"# {escaped(report['title'])}",
        "",
        f"{results['n_texts']:,} texts, in per cent.{sure} Made {report['made']}.",
        *_section("Results", overall_table(results)),
        *_section("By how often a label was seen in training", band_table(results)),
    ]
    new = new_table(results)
    if new is not None:
        lines += _section("Texts that are new", new)
    lines += _section("Data", count_table(report["data"]))
    if labels["best"]:
        found = f"by F1 of the first {labels['among_first']} suggestions"
        lines += _section(f"Best labels, {found}", label_table(labels["best"]))
        lines += _section(f"Worst labels, {found}", label_table(labels["worst"]))
    lines += ["", "## Some texts", ""]
    for text in report["texts"]:
        lines.append(f"- {escaped(text['text'])}")
        found = ", ".join(
            f"{'**' if s['right'] else ''}{escaped(s['name'])}{'**' if s['right'] else ''}" for s in text["suggested"]
        )
        lines.append(f"    - suggested: {found or 'nothing'}")
        if text["missed"]:
            lines.append(f"    - missed: {', '.join(map(escaped, text['missed']))}")
    lines += _section("Model", model_table(report))
    lines += ["", "## Options", "", "```json", json.dumps(report["model"]["options"], indent=1), "```"]
    return "\n".join(lines) + "\n"


def _section(title: str, table: Table) -> list[str]:
    return ["", f"## {title}", "", *table_lines(table)]


def table_lines(table: Table) -> list[str]:
    """A table as lines of Markdown, in columns that line up."""
    rows = [[escaped(cell) for cell in row] for row in (table.head, *table.rows)]
    for row, column in table.best:
        rows[row + 1][column] = f"**{rows[row + 1][column]}**"
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.head))]

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [line(rows[0]), line(rule), *map(line, rows[1:])]


def escaped(text: str) -> str:
    """Without what would end a cell, a line or begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
