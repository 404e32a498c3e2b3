"""Texts span by span: as many at once as buffers and threads allow."""

from __future__ import annotations

from collections.abc import Callable

from longtail.engines.local import LocalEngine
from longtail.progress import Progress

BATCH = 8192
"""Texts of one span, at most: the more, the less often chunks are unpacked."""
_SHARE = 512
"""Fewer texts are not worth a thread."""
_BUFFER = 1 << 21
"""Margins held at once by a thread."""


def each_span(
    work: Callable[[slice], None],
    n_texts: int,
    widest: int,
    name: str,
    engine: LocalEngine | None,
    progress: Progress,
    most: int = BATCH,
) -> None:
    """Call `work` for spans of texts, each of which has at most `widest` margins at once; one span needs no threads."""
    engine = engine or LocalEngine()
    share = -(-n_texts // (2 * engine.n_threads))
    size = min(most, max(1, _BUFFER // max(widest, 1)), max(_SHARE, share))
    spans = [slice(start, min(start + size, n_texts)) for start in range(0, n_texts, size)]
    if len(spans) == 1:
        work(spans[0])
        return

    def counted(span: slice) -> int:
        work(span)
        return int(span.stop - span.start)

    with progress.step(name, n_texts, "texts") as advance:
        for done in engine.map(counted, spans):
            advance(done)
