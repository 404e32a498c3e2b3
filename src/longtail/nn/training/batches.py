"""Choose the texts of each step: shuffled, similar in length, always the same number.

Training reads an endless stream of texts, one shuffle after the other. A window of the stream is sorted by length and
cut into batches, which are shuffled: little padding, and each batch is full. Packed texts have no padding to save: each
batch then has texts of all lengths, so that all batches have about the same number of tokens. The batch of a step
depends on seed and step alone, so a resumed run needs no record of what it has read.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.nn.batch import Batch
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

WINDOW = 64
"""Batches that are sorted together, at most."""
_ALIGNED = 16
"""Products in half precision are fastest with multiples of this."""
_AHEAD = 4
"""Batches that are prepared before they are needed."""


class BatchPlan(NamedTuple):
    """What batches are made of."""

    tokens: TokenRows
    labels: LabelMatrix
    batch_size: int
    seed: int
    pad_id: int
    step_width: int
    """Widths of batches are multiples of this: few widths, so that little is compiled."""
    max_width: int
    packed: bool = False
    """Whether texts lie one after the other, without padding."""

    @property
    def size(self) -> int:
        """Texts of a batch: `batch_size`, or all if there are fewer."""
        return min(self.batch_size, len(self.tokens))

    @property
    def window(self) -> int:
        """Batches that are sorted together: at most an epoch, or a batch would hold texts twice."""
        return min(WINDOW, len(self.tokens) // self.size)

    @property
    def multiple(self) -> int:
        """Packed batches have a multiple of so many tokens: about 1/64 of a batch, and at most one text."""
        most = self.size * len(self.tokens.ids) // len(self.tokens) // 64
        return min(-(-most // _ALIGNED) * _ALIGNED, self.max_width) or self.max_width

    def width(self, texts: NDArray[np.int64]) -> int:
        """Return the width of a batch of these texts."""
        longest = int((self.tokens.ptr[texts + 1] - self.tokens.ptr[texts]).max())
        return min(-(-longest // self.step_width) * self.step_width, max(self.max_width, longest))

    def batch(self, texts: NDArray[np.int64]) -> Batch:
        """Return a batch of these texts, on the host."""
        return self.part(texts, slice(None))

    def part(self, texts: NDArray[np.int64], part: slice) -> Batch:
        """Return a part of a batch, as wide as the whole, so that all processes do the same work."""
        if self.packed:
            return Batch.packed(self.tokens, texts[part], self.multiple, self.labels)
        return Batch.of(self.tokens, texts[part], self.width(texts), self.pad_id, self.labels)


def steps(plan: BatchPlan, first: int = 0) -> Iterator[NDArray[np.int64]]:
    """Yield the texts of each step, from step `first` on, without end."""
    lengths, window = plan.tokens.lengths(), plan.window
    for number in count(first // window):
        drawn = _stream(plan, number * window * plan.size, window * plan.size)
        rng = np.random.default_rng([plan.seed, 1, number])
        by_length = drawn[np.lexsort((rng.random(len(drawn)), lengths[drawn]))]
        if plan.packed:
            batches = rng.permuted(by_length.reshape(plan.size, window), axis=1).T
        else:
            batches = by_length.reshape(window, plan.size)[rng.permutation(window)]
        yield from batches[first - number * window :] if number == first // window else batches


def ahead(plan: BatchPlan, first: int, n_steps: int, part: slice = slice(None)) -> Iterator[tuple[int, Batch]]:
    """Yield step and batch (or a part of each) for steps `first` to `n_steps`, prepared in the background."""
    with ThreadPoolExecutor(1) as pool:
        waiting: list[tuple[int, Future[Batch]]] = []
        try:
            for number, texts in zip(range(first, n_steps), steps(plan, first), strict=False):
                waiting.append((number, pool.submit(plan.part, texts, part)))
                if len(waiting) > _AHEAD:
                    step, batch = waiting.pop(0)
                    yield step, batch.result()
            for step, batch in waiting:
                yield step, batch.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _stream(plan: BatchPlan, start: int, n: int) -> NDArray[np.int64]:
    """Return the texts `start` to `start + n` of the endless stream."""
    pieces, n_texts = [], len(plan.tokens)
    while n > 0:
        epoch, at = divmod(start, n_texts)
        piece = _shuffled(plan.seed, epoch, n_texts)[at : at + n]
        pieces.append(piece)
        start, n = start + len(piece), n - len(piece)
    return np.concatenate(pieces)


@lru_cache(maxsize=4)
def _shuffled(seed: int, epoch: int, n: int) -> NDArray[np.int64]:
    return np.random.default_rng([seed, 0, epoch]).permutation(n)
