"""Work on texts span by span: as many texts at once as buffers and threads allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from longtail.run.run import Run
from longtail.types import TopK

R = TypeVar("R")
BATCH = 8192
"""Texts of one span, at most: the more, the less often chunks are unpacked."""
_SHARE = 512
"""Fewer texts are not worth a thread."""
_BUFFER = 1 << 21
"""Margins held at once by a thread."""


def map_spans(
    work: Callable[[slice], R], n_texts: int, widest: int, *, name: str, run: Run, most: int = BATCH
) -> Iterator[tuple[slice, R]]:
    """Yield each span of texts with `work(span)`, in order.

    A text has at most `widest` margins at once; a span has at most `most` texts. A single span is done here, without
    the engine and without a step called `name`.
    """
    share = -(-n_texts // (2 * run.engine.n_threads))
    size = min(most, max(1, _BUFFER // max(widest, 1)), max(_SHARE, share))
    spans = [slice(start, min(start + size, n_texts)) for start in range(0, n_texts, size)]
    if len(spans) == 1:
        yield spans[0], work(spans[0])
        return
    with run.progress.step(name, n_texts, "texts") as advance:
        for span, result in zip(spans, run.engine.map(work, spans), strict=True):
            advance(span.stop - span.start)
            yield span, result


def rank_spans(
    work: Callable[[slice], tuple[NDArray[np.int32], NDArray[np.float32]]],
    n_texts: int,
    k: int,
    *,
    widest: int,
    run: Run,
    most: int = BATCH,
) -> TopK:
    """Return the lists of all texts; `work` gives labels (n, k) and log scores (n, k) of a span."""
    labels, scores = np.empty((n_texts, k), np.int32), np.empty((n_texts, k), np.float32)
    for span, (some_labels, some_scores) in map_spans(work, n_texts, widest, name="predict", run=run, most=most):
        labels[span], scores[span] = some_labels, some_scores
    return TopK(labels, np.exp(scores, where=labels >= 0, out=scores))
