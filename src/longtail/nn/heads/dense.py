"""Every label scored for every text, in chunks: no sampling, no shortlist.

    vectors (B, d)  ->  logits (B, n_labels)

On one H200 a full pass over 670,091 labels costs a twentieth of what BERT-base takes for the texts: leaving labels out
saves nothing there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.base import HEADS, Head, HeadInputs, LabelSpace, Step, with_gradients, working_dtype
from longtail.nn.heads.chunk_loss import Loss
from longtail.nn.heads.row_work import Work
from longtail.nn.heads.table import LabelTable, LabelTableOptions
from longtail.types import LabelMatrix

_BLOCK = 64
"""Neighbouring labels of which only the best one is compared first."""


class DenseHeadOptions(LabelTableOptions):
    """How the weights of labels are kept and trained, and by which loss."""

    loss: Loss = "bce"
    """Binary cross-entropy of each label, squared hinge with margin 1, or a softmax over all labels."""


@HEADS.register("dense")
class Dense(Head):
    """One row of weights per label."""

    options_class = DenseHeadOptions

    reads_votes = True
    shards: ClassVar[bool] = True
    """Whether each of several processes that train it holds some of the labels only."""
    recordable = True
    has_logits = True

    def __init__(
        self,
        width: int,
        n_labels: int,
        options: LabelTableOptions | None = None,
        loss: Loss = "bce",
    ) -> None:
        super().__init__()
        self.n_labels = n_labels
        self.table = LabelTable(n_labels, width, options or LabelTableOptions(), loss, sharded=self.shards)
        self.works: list[Work] = []

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: LabelTableOptions | None = None) -> Dense:
        """Return a new head for text vectors of `width` numbers; the loss is BCE unless options say another."""
        return cls(width, labels.n_labels, options, options.loss if isinstance(options, DenseHeadOptions) else "bce")

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start biases from how frequent the labels are."""
        self.table.init_from_labels(places.texts_per_label(), places.n_texts)

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the sum, or the mean, over labels; votes are added to logits."""
        vectors = inputs.vectors
        share = share / self.n_labels if self.table.options.reduction == "mean" else share
        plain = vectors.detach().to(working_dtype(vectors))
        with torch.autocast(vectors.device.type, enabled=False):
            allowed, n_step = self.allowed(inputs, targets), len(vectors) / share
            work = self.table.of_all_texts(Work(plain, targets, n_step, allowed=allowed, votes=inputs.votes))
            if self.table.loss_kind == "softmax":
                work = replace(work, sums=self.table.log_sums(work.vectors, work.targets))
            gradient, value = self.table.gradient(work, show)
        if torch.is_grad_enabled():
            self.works.append(work)
        shown = torch.zeros((), device=vectors.device) if value is None else value.mean() * share
        return with_gradients(shown, [vectors], [gradient / n_step])

    def allowed(self, inputs: HeadInputs, targets: Targets) -> Tensor | None:
        """Return which labels take part in the loss of each text, (B, n_labels); None if all do."""
        return None

    def begin_step(self, step: Step) -> None:
        """Let the table learn from the next loss, if its options say so."""
        self.table.begin_step(step.rates["head"], step.decay, step.epsilon)

    def step(self, step: Step) -> None:
        """Update the tables with all that `loss` was given since the last step."""
        self.table.update(self.works, step.rates["head"], step.decay, step.epsilon)
        self.works = []

    def forget(self) -> None:
        """Drop what `loss` was given since the last step."""
        self.works = []

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best of all labels, exactly."""
        logits, places = best_of(self.table, inputs.vectors, k, inputs.votes)
        return self._scores(logits, inputs.vectors), places

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best of all labels."""
        logits, places = self.table.all_logits(inputs.vectors).topk(k)
        return self._scores(logits, inputs.vectors), places

    def logit_of(self, vectors: Tensor, place: int) -> Tensor:
        """Return the logit of a label for each text, (B,)."""
        bias = 0.0 if self.table.bias is None else self.table.bias[place]
        return vectors.float() @ self.table.weight[place].float() + bias

    def _scores(self, logits: Tensor, vectors: Tensor) -> Tensor:
        """Return logits (B, k) as scores in 0..1."""
        if self.table.loss_kind == "bce":
            return logits.sigmoid()
        if self.table.loss_kind == "squared_hinge":
            return hinge_score(logits)
        with torch.autocast(vectors.device.type, enabled=False):
            sums = [chunk.logsumexp(1) for _, chunk in self.table.logits(vectors)]
        return (logits - self.table.log_sum_of_all(torch.stack(sums))[:, None]).exp()

    def tables(self) -> dict[str, LabelTable]:
        """Return the tables that train themselves, by attribute."""
        return {"table": self.table}

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        return {"n_labels": self.n_labels, "n_weights": self.table.weight.numel()}


def best_of(table: LabelTable, vectors: Tensor, k: int, votes: Targets | None = None) -> tuple[Tensor, Tensor]:
    """Return logits and rows of the k best rows of a table, best first; ties by row."""
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
    if table.is_sharded:  # as many of each process
        missing = (0, k - rows.shape[1])
        best = table.of_all_processes(F.pad(best, missing, value=-torch.inf))
        rows = table.of_all_processes(F.pad(rows, missing, value=-1))
    rows, by_row = rows.sort(dim=1)
    best, by_score = best.gather(1, by_row).sort(dim=1, descending=True, stable=True)
    return best[:, :k], rows.gather(1, by_score)[:, :k]


def _top(logits: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best of each row; by blocks where that is faster."""
    n = logits.shape[1]
    if logits.is_cuda and n // _BLOCK >= 8 * k:
        return top_by_blocks(logits, k, _BLOCK)
    return logits.topk(min(k, n))


def top_by_blocks(logits: Tensor, k: int, block: int) -> tuple[Tensor, Tensor]:
    """Return the k best of each row, exactly: the k blocks with the best maxima hold them all.

    There must be at least k blocks.
    """
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
    """Return margins as scores in 0..1: exp(−max(0, 1 − margin)^power), as in X-BERT."""
    return torch.exp(-((1 - margins).clamp(min=0) ** power))
