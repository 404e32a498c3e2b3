"""The output of a command: results on standard output, everything else on standard error.

rich is imported when something is drawn, so that a command in a pipe starts fast.
"""

from __future__ import annotations

import logging
import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from longtail.cli.lines import LINES, say
from longtail.cli.terminal import console
from longtail.run.log import LOG
from longtail.run.processes import is_main_process
from longtail.run.progress import SILENT, Progress
from longtail.tables import Table, json_text

if TYPE_CHECKING:
    from rich.console import Console


WIDTH_IN_PIPES = 120


class Screen:
    """The output of one command."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet or not is_main_process()
        if self.quiet:
            LOG.setLevel(logging.WARNING)

    @cached_property
    def progress(self) -> Progress:
        """Progress bars on a terminal, plain lines elsewhere."""
        if self.quiet:
            return SILENT
        if not sys.stderr.isatty():
            return LINES
        from longtail.cli.progress import Bars

        return Bars()

    def note(self, text: str) -> None:
        """Print a note, unless the command is quiet."""
        if not self.quiet:
            say(text)

    def warn(self, text: str) -> None:
        """Print a note that quiet commands show too."""
        say(f"note: {text}")

    @cached_property
    def console(self) -> Console:
        """Standard output, for tables and colours."""
        return console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_IN_PIPES)

    def headline(self, title: str, text: str) -> None:
        """Print a title in bold, and a text behind it."""
        from rich.text import Text

        self.console.print(Text.assemble((title, "bold"), f": {text}"))

    def table(self, table: Table, title: str = "") -> None:
        """Print a table."""
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
        self.console.print(drawn)


def write_json(value: Any) -> None:
    """Print plain data as JSON."""
    typer.echo(json_text(value, indent=1))
