"""The HTML of pages: a document with its style inside, sections, tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

from longtail.tables import Table


def document(report: dict[str, Any], heading: str, intro: str, sections: Sequence[str]) -> str:
    """Return a whole page; `intro` and `sections` are HTML, `heading` is text."""
    style = (files("longtail.report") / "page.css").read_text(encoding="utf-8")
    origin = f"{escape(report['made'])}, longtail {escape(report['environment']['longtail'])}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(report['title'])}</title><style>{style}</style></head>\n"
        f"<body><main><header><h1>{escape(heading)}</h1><p>{intro}</p></header>\n"
        + "\n".join(sections)
        + f"\n<footer>{origin}</footer></main></body></html>\n"
    )


def section(title: str, inside: str, note: str = "") -> str:
    """Return a section of a page; all arguments are HTML."""
    above = f'<p class="note">{note}</p>' if note else ""
    return f"<section><h2>{title}</h2>{above}{inside}</section>"


def list_html(sentences: Sequence[str]) -> str:
    """Return texts as a list; nothing if there are none."""
    return (
        f'<ul class="sentences">{"".join(f"<li>{escape(each)}</li>" for each in sentences)}</ul>' if sentences else ""
    )


def figures_html(pictures: Sequence[tuple[str, str]]) -> str:
    """Return pictures (SVG) with their captions (text), side by side where there is room."""
    figures = (f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>" for svg, caption in pictures)
    return f'<div class="pictures">{"".join(figures)}</div>'


def table_html(table: Table, head: bool = True, kind: str = "") -> str:
    """Return a table, `kind` is for its style; without `head` it has no header row and its cells are words."""
    names = "".join(f'<th scope="col">{_breakable(cell)}</th>' for cell in table.head)
    top = f"<thead><tr>{names}</tr></thead>" if head else ""
    rows = "".join(
        f'<tr><th scope="row">{_breakable(row[0])}</th>'
        + "".join(_cell(cell, (number, place) in table.best) for place, cell in enumerate(row[1:], 1))
        + "</tr>"
        for number, row in enumerate(table.rows)
    )
    kind = kind if head else "words"
    return f'<div class="scroll" tabindex="0"><table class="{kind}">{top}<tbody>{rows}</tbody></table></div>'


def _breakable(name: str) -> str:
    """Return a name that may go on in the next line behind a slash."""
    return escape(name).replace("/", "/<wbr>")


def _cell(cell: str, best: bool) -> str:
    """Return a cell with its interval in small print; the best values stand out."""
    value, bracket, rest = cell.partition(" (")
    is_interval = bracket and rest.endswith(")") and ("–" in rest or " to " in rest)
    inside = f"{escape(value)} <small>({escape(rest)}</small>" if is_interval else escape(cell)
    return f'<td class="best">{inside}</td>' if best else f"<td>{inside}</td>"
