"""Tables as cells of text, how they are written in Markdown, and plain data as JSON."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

CONTROL_PICTURES = (
    {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
    | {0x7F: 0x2421}
    | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
)
"""Pictures (␛) of the control characters other than line ends and tabs, for `str.translate`."""
_CONTROLS = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}


class Table(NamedTuple):
    """Cells of text; the first column holds words, the others numbers."""

    head: list[str]
    rows: list[list[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of cells to emphasise."""


def markdown_lines(table: Table) -> list[str]:
    """Return the lines of a Markdown table, padded so that its columns line up in a terminal too."""
    rows = [[escape_markdown(cell) for cell in row] for row in (table.head, *table.rows)]
    for row, column in table.best:
        rows[row + 1][column] = f"**{rows[row + 1][column]}**"
    widths = [max(3, *(len(row[i]) for row in rows)) for i in range(len(table.head))]

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        return "| " + " | ".join(cells) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return [line(rows[0]), line(rule), *map(line, rows[1:])]


def json_text(value: Any, indent: int | None = None) -> str:
    """Return JSON that is safe to show on a terminal: the control characters that JSON allows are escaped as well."""
    return json.dumps(value, ensure_ascii=False, indent=indent).translate(_CONTROLS)


def escape_markdown(text: str) -> str:
    """Return a text in one line, without what would end a cell or begin a tag."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
