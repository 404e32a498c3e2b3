"""Results, options and environment of one evaluation, for machines and for people.

    model, Evaluation  ->  make_report  ->  plain data  ->  report.json, report.md, report.html

Everything stands in the plain data; the Markdown and the page only show it. The page is one file that needs
nothing else: its style and pictures are inside.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from longtail.errors import LongtailError
from longtail.report.comparison import html_comparison, markdown_comparison
from longtail.report.contents import make_report
from longtail.report.markdown import markdown_report
from longtail.report.page import html_report

__all__ = [
    "html_comparison",
    "html_report",
    "make_report",
    "markdown_comparison",
    "markdown_report",
    "write_comparison",
    "write_report",
]


def write_report(report: dict[str, Any], folder: str | Path) -> dict[str, Path]:
    """Write report.json, report.md and report.html into a folder, which is made where it is missing."""
    return _written(
        Path(folder),
        {
            "report.json": json.dumps(report, indent=1, ensure_ascii=False) + "\n",
            "report.md": markdown_report(report),
            "report.html": html_report(report),
        },
    )


def write_comparison(comparison: dict[str, Any], folder: str | Path) -> dict[str, Path]:
    """Write compare.json, compare.md and compare.html into a folder."""
    return _written(
        Path(folder),
        {
            "compare.json": json.dumps(comparison, indent=1, ensure_ascii=False) + "\n",
            "compare.md": markdown_comparison(comparison),
            "compare.html": html_comparison(comparison),
        },
    )


def _written(folder: Path, contents: dict[str, str]) -> dict[str, Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise LongtailError(f"cannot write the report to {folder}: {error.strerror or error}") from error
    return {name: folder / name for name in contents}
