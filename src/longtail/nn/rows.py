"""Vectors of which every step touches few: the words of a bag, the nodes of a label tree. They train themselves.

    touches (row, text, weight), numbers (B, d)   ->   gradient of a row: sum of weight · numbers[text] over its touches

An optimiser that visits all rows spends its time on rows that a step has nothing to say about. Here only touched rows
are read and written: of 500,000 words of 100 numbers, 128 texts update theirs in 8 ms, where fused AdamW takes 158
(one core). The rule is Adagrad's with one number a row: a row's rate falls as it learns, so a frequent word settles
early and a rare one still moves when it comes. On debtags that is more accurate than Adam on touched rows, and quicker.

Gradients come in `works`, one a micro-batch; none of all rows ever exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

_EPS = 1e-10
_TOUCHED = 1 << 15
"""Rows that a step touches, for counting memory."""


@dataclass(frozen=True, eq=False)
class Touches:
    """What a micro-batch adds to a step of some rows."""

    rows: Tensor  # (n,) int64, any order
    texts: Tensor  # (n,) int64
    numbers: Tensor  # (B, d) float32
    weights: Tensor  # (n,) float32

    @classmethod
    def joined(cls, parts: Sequence[Touches]) -> Touches:
        """Those of several micro-batches as one."""
        if len(parts) == 1:
            return parts[0]
        starts = [0]
        for part in parts:
            starts.append(starts[-1] + len(part.numbers))
        texts = [part.texts + start for part, start in zip(parts, starts, strict=False)]
        rest = [torch.cat([getattr(part, name) for part in parts]) for name in ("numbers", "weights")]
        return cls(torch.cat([part.rows for part in parts]), torch.cat(texts), *rest)

    def gradients(self) -> tuple[Tensor, Tensor]:
        """The rows that are touched (m,), each once, and their gradients (m, d)."""
        ordered, order = self.rows.sort(stable=True)
        rows, counts = torch.unique_consecutive(ordered, return_counts=True)
        starts = counts.cumsum(0) - counts
        made = functional.embedding_bag(
            self.texts[order], self.numbers, starts, mode="sum", per_sample_weights=self.weights[order]
        )
        return rows, made


class RowTable(nn.Embedding):
    """Rows that train themselves, as few as a step touches."""

    def __init__(self, n_rows: int, width: int, bound: float = 0.0) -> None:
        """Rows begin between −`bound` and `bound`."""
        weight = torch.empty(n_rows, width).uniform_(-bound, bound) if bound else torch.zeros(n_rows, width)
        super().__init__(n_rows, width, _weight=weight)
        self.weight.requires_grad_(False)
        self.squares: Tensor | None = None
        """(n_rows,) sums of the mean squares of a row's gradients."""
        self.works: list[Touches] = []
        self.compiled = False
        self.gather: Callable[[Sequence[Touches]], Sequence[Touches]] | None = None
        """With several processes: brings together what all of them add to a step."""

    def sums(self, ids: Tensor, real: Tensor) -> Tensor:
        """Sum (B, width) of the rows of the real ids (B, T), without ever making (B, T, width).

        Where gradients are wanted, what the rows learn from it is kept in `works`.
        """
        if not torch.is_grad_enabled():
            return bag_sums(self.weight, ids, real)
        made: Tensor = _Sums.apply(torch.zeros((), requires_grad=True), self, ids, real)  # type: ignore[no-untyped-call]
        return made

    @torch.no_grad()
    def update(self, rate: float, decay: float = 0.0, scale: float = 1.0) -> None:
        """One step with all `works`, whose gradients are `scale` times too large."""
        works: Sequence[Touches] = self.works
        works = self.gather(works) if self.gather else works
        self.works = []
        if not works:
            return
        rows, gradient = Touches.joined(works).gradients()
        gradient = gradient / scale
        squares = self._squares()[rows] + (gradient * gradient).mean(1)
        self._squares()[rows] = squares
        change = gradient * (rate / (squares.sqrt() + _EPS))[:, None]
        self.weight[rows] = self.weight[rows] * (1 - rate * decay) - change

    def state(self) -> dict[str, Tensor]:
        """What training needs beside the weights to go on."""
        return {"squares": self._squares()}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self.squares = state["squares"].to(self.weight.device, copy=True)

    @property
    def n_at_once(self) -> int:
        """Rows that a step touches, about, at most."""
        return min(self.num_embeddings, _TOUCHED)

    @property
    def moment_bytes(self) -> int:
        """What the optimiser remembers."""
        return 4 * self.num_embeddings

    def _squares(self) -> Tensor:
        if self.squares is None:
            self.squares = torch.zeros(self.num_embeddings, device=self.weight.device)
        return self.squares


def bag_sums(table: Tensor, ids: Tensor, real: Tensor) -> Tensor:
    """Sum (B, width) of the rows of the real ids (B, T) of a table."""
    return functional.embedding_bag(ids, table, mode="sum", per_sample_weights=real.to(table.dtype))


class _Sums(torch.autograd.Function):
    """Nothing flows on from here: the gradient goes to the table. The first argument only makes autograd come."""

    @staticmethod
    def forward(ctx: Any, anchor: Tensor, table: RowTable, ids: Tensor, real: Tensor) -> Tensor:
        ctx.table, ctx.ids, ctx.real = table, ids, real
        return bag_sums(table.weight, ids, real)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[None, None, None, None]:
        n_texts, width = ctx.ids.shape
        texts = torch.arange(n_texts, device=upper.device).repeat_interleave(width)
        weights = ctx.real.reshape(-1).float()
        ctx.table.works.append(Touches(ctx.ids.reshape(-1), texts, upper.float().contiguous(), weights))
        return None, None, None, None
