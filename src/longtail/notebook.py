"""Small HTML tables that notebooks show for models, data and predictions. Every cell is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

SHOWN_ROWS = 10
"""Rows of data that a notebook shows."""
_CELL = 200


def html_table(title: str, rows: Iterable[Sequence[Any]], head: Sequence[str] = (), more: int = 0) -> str:
    """Return a table under a title; `more` is how many rows are left out. Long cells are cut."""
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"] if head else []
    lines += [f"<tr>{''.join(f'<td>{escape(shorten(cell, _CELL))}</td>' for cell in row)}</tr>" for row in rows]
    lines += [f'<tr><td colspan="{max(len(head), 2)}">… and {more:,} more</td></tr>'] if more > 0 else []
    return f"<div><strong>{escape(title)}</strong><table>{''.join(lines)}</table></div>"


def shorten(value: Any, length: int) -> str:
    """Return a value as text of at most `length` characters."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= length else f"{text[: length - 1]}…"
