"""Every label scored for every text, in chunks: no sampling, no shortlist.

    vectors (B, d)  ->  logits (B, n_labels)

On one H200 a full pass over 670,091 labels costs a twentieth of what BERT-base takes for the texts: leaving labels out
saves nothing there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from longtail.nn.batch import Targets
from longtail.nn.heads.base import Head, Step, working_dtype
from longtail.nn.heads.table import LabelTable, Loss, TableOptions, Work
from longtail.types import LabelMatrix

_BLOCK = 64
"""Neighbouring labels of which only the best is looked at first."""


class Dense(Head):
    """One row of weights a label."""

    def __init__(
        self,
        width: int,
        n_labels: int,
        options: TableOptions | None = None,
        loss: Loss = "bce",
    ) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.table = LabelTable(n_labels, width, options or TableOptions(), loss)
        self.works: list[Work] = []

    def begin(self, places: LabelMatrix) -> None:
        """See `Head.begin`."""
        self.table.begin(places.texts_per_label(), places.n_texts)

    def loss(
        self, vectors: Tensor, targets: Targets, share: float = 1.0, show: bool = False, votes: Targets | None = None
    ) -> Tensor:
        """See `Head.loss`; the sum over labels, which Adam cannot tell from their mean. `votes` are added to logits."""
        plain = vectors.detach().to(working_dtype(vectors))
        with torch.autocast(vectors.device.type, enabled=False):
            sums = self.table.log_sums(plain, targets) if self.table.loss_kind == "softmax" else None
            work = Work(plain, targets, n_step=len(vectors) / share, sums=sums, votes=votes)
            gradient, value = self.table.gradient(work, show)
        if torch.is_grad_enabled():
            self.works.append(work)
        shown = torch.zeros((), device=vectors.device) if value is None else value.mean() * share
        return given_gradient(vectors, gradient / work.n_step, shown)

    def step(self, step: Step) -> None:
        """See `Head.step`."""
        self.table.update(self.works, step.rates["head"], step.decay)
        self.works = []

    def forget(self) -> None:
        """See `Head.forget`."""
        self.works = []

    def top_k(self, vectors: Tensor, k: int, votes: Targets | None = None) -> tuple[Tensor, Tensor]:
        """See `Head.top_k`: exact, over all labels."""
        logits, places = best_of(self.table, vectors, k, votes)
        return self._scores(logits, vectors), places

    def _scores(self, logits: Tensor, vectors: Tensor) -> Tensor:
        """Logits (B, k) as scores in 0..1."""
        if self.table.loss_kind == "bce":
            return logits.sigmoid()
        if self.table.loss_kind == "squared_hinge":
            return hinge_score(logits)
        with torch.autocast(vectors.device.type, enabled=False):
            parts = [part.logsumexp(1) for _, part in self.table.logits(vectors)]
        return (logits - torch.stack(parts).logsumexp(0)[:, None]).exp()

    def tables(self) -> dict[str, LabelTable]:
        """See `Head.tables`."""
        return {"table": self.table}

    def facts(self) -> dict[str, Any]:
        """See `Head.facts`."""
        return {"n_labels": self.n_labels, "n_weights": self.table.weight.numel()}


def best_of(table: LabelTable, vectors: Tensor, k: int, votes: Targets | None = None) -> tuple[Tensor, Tensor]:
    """Logits and rows of the k best rows of a table, best first; equal ones among them by row."""
    best, rows = None, None
    vectors = vectors.to(working_dtype(vectors))  # while autocast is still on
    with torch.autocast(vectors.device.type, enabled=False):
        for start, logits in table.logits(vectors, votes):
            values, places = _top(logits, k)
            places = places + start
            best = values if best is None else torch.cat([best, values], 1)
            rows = places if rows is None else torch.cat([rows, places], 1)
            if best.shape[1] > k:
                best, chosen = best.topk(k)
                rows = rows.gather(1, chosen)
    if best is None or rows is None:
        raise ValueError("a table must have rows")
    rows, by_row = rows.sort(dim=1)
    best, by_score = best.gather(1, by_row).sort(dim=1, descending=True, stable=True)
    return best, rows.gather(1, by_score)


def _top(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row; by blocks where that is faster."""
    n = logits.shape[1]
    if logits.is_cuda and n // _BLOCK >= 8 * k:
        return top_by_blocks(logits, k, _BLOCK)
    return logits.topk(min(k, n))


def top_by_blocks(logits: Tensor, k: int, block: int) -> tuple[Tensor, Tensor]:
    """The k best of each row, exactly: the k blocks with the best maxima hold them all. There must be k blocks."""
    n_texts, n = logits.shape
    n_blocks = n // block
    whole = n_blocks * block
    blocks = logits[:, :whole].reshape(n_texts, n_blocks, block)
    chosen = blocks.amax(2).topk(k).indices  # (B, k)
    inside = (chosen[:, :, None] * block + torch.arange(block, device=logits.device)).view(n_texts, -1)
    rest = torch.arange(whole, n, device=logits.device).expand(n_texts, -1)
    places = torch.cat([inside, rest], 1)
    values, at = logits.gather(1, places).topk(k)
    return values, places.gather(1, at)


def hinge_score(margins: Tensor, power: int = 2) -> Tensor:
    """A margin as a score in 0..1: exp(−max(0, 1 − margin)^power), X-BERT's."""
    return torch.exp(-((1 - margins).clamp(min=0) ** power))


def given_gradient(vectors: Tensor, gradient: Tensor, value: Tensor) -> Tensor:
    """`value` as a loss whose gradient by `vectors` is `gradient`, whatever the value says."""
    made: Tensor = _Given.apply(vectors, gradient, value)  # type: ignore[no-untyped-call]
    return made


class _Given(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, vectors: Tensor, gradient: Tensor, value: Tensor) -> Tensor:
        ctx.save_for_backward(gradient)
        ctx.kind = vectors.dtype
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return (gradient * upper).to(ctx.kind), None, None
