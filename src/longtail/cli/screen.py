"""Where commands write: results to standard output, all else to standard error.

Libraries for drawing are loaded when something is drawn, so that a command in a pipe starts fast.
"""

from __future__ import annotations

import json
import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from longtail.log import LOG
from longtail.processes import is_main_process
from longtail.progress import SILENT, Progress

if TYPE_CHECKING:
    from rich.console import Console

    from longtail.report.tables import Table

WIDTH_IN_PIPES = 120


class Screen:
    """What one command shows."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet or not is_main_process()
        if self.quiet:
            LOG.setLevel(logging.WARNING)

    @cached_property
    def progress(self) -> Progress:
        """Bars on a terminal, silence elsewhere."""
        if self.quiet or not sys.stderr.isatty():
            return SILENT
        from longtail.cli.progress import Bars

        return Bars()

    def note(self, text: str) -> None:
        """Something worth knowing, unless the user asked for quiet."""
        if not self.quiet:
            typer.echo(text, err=True)

    def warn(self, text: str) -> None:
        """Something the user must know."""
        typer.echo(f"note: {text}", err=True)

    @cached_property
    def paper(self) -> Console:
        """Standard output, for tables and colours."""
        from rich.console import Console

        return Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_IN_PIPES)

    def table(self, table: Table, title: str = "") -> None:
        """A table whose first column is of words and whose others are of numbers."""
        from rich import box
        from rich.table import Table as Drawn
        from rich.text import Text

        drawn = Drawn(
            title=title or None, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False
        )
        for number, name in enumerate(table.head):
            drawn.add_column(name, justify="right" if number else "left")
        for number, row in enumerate(table.rows):
            bold = ["bold" if (number, place) in table.best else "" for place in range(len(row))]
            drawn.add_row(*(Text(cell, style=style) for cell, style in zip(row, bold, strict=True)))
        self.paper.print(drawn)


def write_json(value: Any) -> None:
    """Plain data as JSON on standard output."""
    typer.echo(json.dumps(value, indent=1, ensure_ascii=False))


def in_bytes(n: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:,.0f} {unit}" if unit == "bytes" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} TB"


def in_seconds(n: float) -> str:
    """A duration for people."""
    return f"{n:.1f} s" if n < 100 else f"{n // 60:.0f} min {n % 60:.0f} s"
