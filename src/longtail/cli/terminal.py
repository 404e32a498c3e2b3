"""Keep control characters of data away from the terminal.

Names, texts and paths may hold escapes that move the cursor, retitle the window or hide what was said. Whatever
commands write passes `SafeStream` or is drawn by a console of `console()`; both show control characters as pictures
(␛). Line ends and tabs stay.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from longtail.tables import CONTROL_PICTURES

if TYPE_CHECKING:
    from rich.console import Console


def shown(text: str) -> str:
    """Return a text with pictures of its control characters."""
    return text.translate(CONTROL_PICTURES)


class SafeStream:
    """A stream of text that lets no control characters through."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text with pictures of its control characters."""
        return self.stream.write(shown(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def safe_streams() -> Iterator[None]:
    """Let what is written on standard output and standard error pass through a `SafeStream`."""
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(SafeStream, streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


def console(*, stderr: bool = False, **options: Any) -> Console:
    """Return a console whose own escapes reach the terminal, but none of what is drawn."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class SafeConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=shown(segment.text))

    stream: Any = sys.stderr if stderr else sys.stdout
    return SafeConsole(file=getattr(stream, "stream", stream), stderr=stderr, **options)
