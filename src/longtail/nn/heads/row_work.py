"""What the texts of a step teach the rows of a label table.

vectors (B, d), targets  ->  gradients of weights (n_chunk, d) and bias (n_chunk,), one chunk of rows at a time
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.chunk_loss import chunk_logits, chunk_signal

if TYPE_CHECKING:
    from longtail.nn.heads.table import LabelTable
    from longtail.nn.training.parallel import Exchange


class RowWork(Protocol):
    """What a micro-batch adds to a step of a table."""

    @property
    def n_step(self) -> float:
        """Return the number of texts in the whole step, over which the gradient is a mean."""

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield the gradients of weights (n_chunk, d) and bias (n_chunk,) of each chunk of rows, summed over texts."""

    @classmethod
    def gather(cls, works: Sequence[Any], exchange: Exchange) -> Sequence[RowWork]:
        """Return one work per process from the micro-batches of this one; all processes must call it."""


@dataclass(frozen=True, eq=False)
class Work:
    """What a micro-batch adds to a step of a table of which it read all rows."""

    vectors: Tensor  # (B, d)
    targets: Targets
    n_step: float
    weights: Tensor | None = None  # (B,) how much each text counts for the rows; None: all count 1
    allowed: Tensor | None = None  # (B, n_groups) bool: groups of rows that take part; None: all
    sums: Tensor | None = None  # (B,) softmax: see `log_sums`
    votes: Targets | None = None  # what is added to logits
    own: slice | None = None  # texts of this process, where those of all are here; None: all are its own

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Yield the gradients of weights and bias of each chunk of rows, summed over texts."""
        for chunk in table.chunks(self.targets, self.vectors.dtype, self.votes):
            allowed = table.allowed_in(chunk, self.allowed)
            signal = chunk_signal(table.loss_kind, chunk_logits(self.vectors, chunk), chunk, allowed, self.sums)
            yield self.of_rows(signal, table.bias is not None)

    def of_rows(self, signal: Tensor, has_bias: bool) -> tuple[Tensor, Tensor | None]:
        """Return the gradients of weights (n_chunk, d) and bias (n_chunk,) from those of logits (B, n_chunk)."""
        if self.weights is not None:
            signal = signal * self.weights.to(signal.dtype)[:, None]
        return signal.T @ self.vectors, signal.sum(0, dtype=torch.float32) if has_bias else None

    @classmethod
    def gather(cls, works: Sequence[Work], exchange: Exchange) -> list[Work]:
        """Return one work per process from the micro-batches of this one; all processes must call it."""
        first = works[0]
        targets = exchange.targets([work.targets for work in works])
        own_votes = [work.votes for work in works if work.votes is not None]
        votes: Sequence[Targets | None] = exchange.targets(own_votes) if own_votes else [None] * len(targets)
        names = [name for name in ("vectors", "weights", "allowed", "sums") if getattr(first, name) is not None]
        columns = [[getattr(work, name) for work in works] for name in names]
        tensors = exchange.rows(columns, [theirs.n_texts for theirs in targets])
        n_step = first.n_step * len(targets)
        return [
            replace(first, targets=theirs, votes=voted, n_step=n_step, **_by_name(names, columns_of))
            for theirs, voted, columns_of in zip(targets, votes, tensors, strict=True)
        ]

    def of_all(self, exchange: Exchange) -> Work:
        """Return the works of this micro-batch in all processes as one; all processes must call it."""
        works = self.gather([self], exchange)
        counts = [len(work.vectors) for work in works]
        first = sum(counts[: exchange.rank])
        texts_here = slice(first, first + counts[exchange.rank])
        votes = [work.votes for work in works if work.votes is not None]
        names = [name for name in ("vectors", "weights", "allowed", "sums") if getattr(self, name) is not None]
        tensors: dict[str, Any] = {name: torch.cat([getattr(work, name) for work in works]) for name in names}
        targets = Targets.joined([work.targets for work in works])
        return replace(
            works[0], own=texts_here, targets=targets, votes=Targets.joined(votes) if votes else None, **tensors
        )


def _by_name(names: Sequence[str], tensors: Sequence[Tensor]) -> dict[str, Any]:
    return dict(zip(names, tensors, strict=True))
