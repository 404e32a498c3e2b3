"""Results, options and environment of one evaluation, for machines and for people.

    model, Evaluation  ->  make_report  ->  plain data  ->  report.json, report.md, report.html

Everything stands in the plain data; the Markdown and the page only show it. The page is one file that needs
nothing else: its style and pictures are inside.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.data.examination import Examination, examination_markdown
from longtail.errors import ConfigError, LongtailError
from longtail.files import write_text
from longtail.report.comparison import html_comparison, markdown_comparison
from longtail.report.contents import environment, make_report
from longtail.report.examination import html_examination
from longtail.report.markdown import markdown_report
from longtail.report.page import html_report
from longtail.tables import CONTROL_PICTURES, json_text

__all__ = [
    "html_comparison",
    "html_report",
    "make_report",
    "markdown_comparison",
    "markdown_report",
    "write_comparison",
    "write_examination",
    "write_files",
    "write_report",
]


def write_report(report: dict[str, Any], folder: str | Path) -> dict[str, Path]:
    """Write report.json, report.md and report.html into a folder; returns the files by name."""
    return write_files(folder, _contents("report", report, markdown_report(report), html_report(report)))


def write_comparison(comparison: dict[str, Any], folder: str | Path) -> dict[str, Path]:
    """Write compare.json, compare.md and compare.html into a folder; returns the files by name."""
    markdown, html = markdown_comparison(comparison), html_comparison(comparison)
    return write_files(folder, _contents("compare", comparison, markdown, html))


def write_examination(examination: Examination, folder: str | Path) -> dict[str, Path]:
    """Write data.json, data.md and data.html into a folder; returns the files by name."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    about = {"title": f"{examination.name}, checked", "made": now, "environment": environment()}
    report = examination.plain() | about
    page = html_examination(examination, report)
    return write_files(folder, _contents("data", report, examination_markdown(examination), page))


def write_files(folder: str | Path, contents: Mapping[str, str]) -> dict[str, Path]:
    """Write texts by file name into a folder, which is made where it is missing; returns the files by name."""
    folder = Path(folder)
    if folder.suffix in (".html", ".md", ".json"):
        raise ConfigError(f"a report is a folder with a page, Markdown and JSON, got {folder}; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            write_text(folder / name, content)
    except OSError as error:
        raise LongtailError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return {name: folder / name for name in contents}


def _contents(name: str, data: dict[str, Any], markdown: str, html: str) -> dict[str, str]:
    """Return the texts of three files; control characters of data become pictures, for those who print them."""
    shown = {"md": markdown.translate(CONTROL_PICTURES), "html": html.translate(CONTROL_PICTURES)}
    return {f"{name}.json": json_text(data, indent=1) + "\n", **{f"{name}.{kind}": shown[kind] for kind in shown}}
