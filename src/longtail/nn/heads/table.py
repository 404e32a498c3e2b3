"""One row of weights per label, scored and trained in chunks of labels.

    vectors (B, d)  ->  logits (B, n_rows) chunk by chunk, never all at once

The gradient of the logits is explicit (sigmoid minus target, or that of the hinge), so neither the loss nor dense
targets are needed. `gradient` returns the gradient of the vectors, for the encoder. The rows are updated later, in
`update`, which computes the logits of each chunk again and applies the chunk's gradient at once. That takes a third
more products than keeping gradients, but a gradient of the whole table never exists, and micro-batches (or other
processes) add only their vectors and targets to a step, which are small. What adds to a step returns the gradient of
each chunk of rows (`row_work`): `Work` reads all rows, `candidates.Gathered` a few.

Where several processes train a table, each may hold some of its rows (`shards`). Rows are numbered as in the whole
table everywhere outside of this file.

Rows may be padding: their logits are −inf, so they have no loss and no gradient and are never returned.

The gradient of the rows is that of the sum over labels and the mean over texts, whatever scale the encoder's has.

Targets may be weighted (`Targets.values`): their part of the loss is multiplied by that.

A softmax over labels needs the log of each text's sum of exponentials before any gradient (`log_sums`), which is one
more pass over the chunks. Its targets are the text's labels in equal shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.labels.frequency import log_odds, smoothed_share
from longtail.nn.batch import Targets
from longtail.nn.heads.chunk_loss import Loss, RowChunk, chunk_logits, chunk_signal, chunk_value
from longtail.nn.heads.row_updates import row_update, step_numbers
from longtail.nn.heads.row_work import RowWork, Work
from longtail.nn.heads.shards import rows_here
from longtail.options import Ablation, Options

if TYPE_CHECKING:
    from longtail.nn.training.parallel import Exchange


class LabelTableOptions(Options):
    """How the rows of labels are kept and trained."""

    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, or SGD with momentum, which takes less memory and is better for hundreds of thousands of labels."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """sgd: the momentum; with 0 no state is kept, which halves the memory."""
    storage: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 halves the memory; updates are then rounded stochastically, so that small ones are not lost."""
    prior: Ablation[bool] = True
    """Start biases from each label's frequency: its log odds in training (with a softmax the log of its share, with a
    hinge −1). Otherwise the first epoch is spent on pushing hundreds of wrong labels per text down, and the encoder
    with them."""
    reduction: Ablation[Literal["sum", "mean"]] = "sum"
    """What labels' weights learn from. `sum`: each text's sum over labels, whose gradient is never small beside Adam's
    epsilon. `mean`: the mean over labels, and in a shortlist the loss as `shortlist.loss` has it; then
    `training.epsilon` matters (LightXML's code)."""
    chunk: PositiveInt = 1 << 16
    """Labels whose logits are computed at once."""
    passes: Literal[1, 2] = 2
    """2: rows are updated after the encoder's gradient is known, for which logits are computed again. 1: together
    with the gradient of the vectors: a quarter fewer products, which counts for millions of labels. Batches that are
    cut into micro-batches take 2; a step that runs out of GPU memory may leave out the update of some rows."""


_DRAWN_AT_ONCE = 1 << 16
"""Rows."""


class UpdateRates(NamedTuple):
    """How far an update goes."""

    rate: float
    decay: float
    epsilon: float


class LabelTable(nn.Module):
    """Weights of labels, with their own optimiser."""

    weight: nn.Parameter
    bias: nn.Parameter | None
    padding_mask: Tensor | None
    """(n_rows,) −inf where a row is padding, else 0."""
    numbers_at_once = 1 << 25
    """Weights of candidates that are gathered at once."""

    def __init__(
        self,
        n_rows: int,
        width: int,
        options: LabelTableOptions,
        loss: Loss = "bce",
        *,
        bias: bool = True,
        group: int = 1,
        real: NDArray[np.bool_] | None = None,
        bound: float | None = None,
        sharded: bool = False,
    ) -> None:
        """Make a table of `n_rows` rows of `width` numbers.

        `group` neighbouring rows form a group of `Work.allowed`. `real` (n_rows,) is false where a row is padding.
        Weights start between −`bound` and `bound`, by default 1/√width. With `sharded`, this process may hold some rows
        only: the same numbers as in the whole table.
        """
        super().__init__()
        self.options, self.loss_kind, self.group = options, loss, group
        self.n_rows, self.rows = n_rows, rows_here(n_rows, group) if sharded else range(n_rows)
        self.real = None if real is None else torch.from_numpy(real)
        kind = getattr(torch, options.storage)
        bound = width**-0.5 if bound is None else bound
        weight = _drawn(n_rows, width, bound, self.rows, kind)
        self._hold(self.rows, weight, torch.zeros(len(self.rows)) if bias else None)
        self.moments: dict[str, Tensor] = {}
        self.n_updates = 0
        self.updates_now: UpdateRates | None = None
        """Rates of a step of one pass: the next gradient with autograd on updates the rows as well."""
        self.is_updated = False
        """Whether that has happened in this step."""
        self.compiled = False
        self.exchange: Exchange | None = None
        """Set where several processes train the table."""

    def _hold(self, rows: range, weight: Tensor, bias: Tensor | None) -> None:
        """Hold these rows, with weights (n, d) and biases (n,)."""
        self.rows = rows
        self.weight = nn.Parameter(weight, requires_grad=False)
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        padding_mask = None
        if self.real is not None:
            padding_mask = torch.where(self.real[rows.start : rows.stop], 0.0, -torch.inf).to(weight.device)
        self.register_buffer("padding_mask", padding_mask, persistent=False)
        step = max(1, self.options.chunk // self.group) * self.group
        self.edges = np.append(np.arange(0, len(rows), step), len(rows)).astype(np.int64)

    def become_whole(self, weight: Tensor, bias: Tensor | None) -> None:
        """Hold all rows from now on, trained: weights (n_rows, d) and biases (n_rows,)."""
        self._hold(range(self.n_rows), weight, bias)
        self.moments, self.exchange = {}, None

    @property
    def is_sharded(self) -> bool:
        """Whether this process holds only some of the rows."""
        return len(self.rows) < self.n_rows

    @property
    def offset(self) -> Tensor | None:
        """Return what is added to each logit of the rows here."""
        terms = [term for term in (self.bias, self.padding_mask) if term is not None]
        return sum(terms[1:], terms[0]) if terms else None

    @property
    def n_at_once(self) -> int:
        """Return the number of rows of the largest chunk."""
        return int(np.diff(self.edges).max())

    @property
    def moment_bytes(self) -> int:
        """Return the bytes of the optimiser's state: one stored number per weight (sgd), or two in float32 (adam)."""
        if self.options.optimizer == "sgd":
            n_moments = self._n_moments
            return n_moments * sum(parameter.numel() * parameter.element_size() for parameter in self.parameters())
        return 8 * sum(parameter.numel() for parameter in self.parameters())

    def init_from_labels(self, counts: NDArray[np.int64], n_texts: int) -> None:
        """Set biases from the number of training texts of each row (n_rows,)."""
        if self.bias is None or not self.options.prior:
            return
        if self.loss_kind == "bce":
            begins = log_odds(counts, n_texts)
        elif self.loss_kind == "softmax":
            begins = np.log(smoothed_share(counts, n_texts)).astype(np.float32)
        else:
            begins = np.full(len(counts), -1, np.float32)
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(begins[self.rows.start : self.rows.stop]))

    def log_sums(self, vectors: Tensor, targets: Targets) -> Tensor:
        """Return the log-sum-exp of each text's logits (B,) float32; inf for texts without labels, to skip them."""
        sums = [chunk_logits(vectors, chunk).float().logsumexp(1) for chunk in self.chunks(None, vectors.dtype)]
        alone = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
        alone[targets.rows] = False
        return self.log_sum_of_all(torch.stack(sums)).masked_fill_(alone, torch.inf)

    def log_sum_of_all(self, sums: Tensor) -> Tensor:
        """Return the log-sum-exp (B,) over the chunks (n, B) of all processes."""
        total = sums.logsumexp(0)
        return self.of_all_processes(total[:, None]).logsumexp(1)

    def of_all_processes(self, columns: Tensor) -> Tensor:
        """Return the columns (B, n) of all processes side by side, which have the same texts; all must call it."""
        if not self.is_sharded:
            return columns
        exchange = self._shared()
        return torch.cat([theirs for (theirs,) in exchange.rows([[columns]], [len(columns)] * exchange.n_ranks)], 1)

    def of_all_texts(self, work: Work) -> Work:
        """Return the work of all processes' texts if each holds other rows; all must call it."""
        return work.of_all(self._shared()) if self.is_sharded else work

    def _shared(self) -> Exchange:
        if self.exchange is None:
            raise ValueError("some rows of this table are in other processes; it can be used in their training only")
        return self.exchange

    def gradient(self, work: Work, show: bool) -> tuple[Tensor, Tensor | None]:
        """Return the gradient (B, d) float32 of each text's sum over labels; with `show` also that sum (B,).

        Texts are those of this process, also where the work is that of all.
        In a step of one pass (`begin_step`), rows are updated on the way.
        """
        vectors = work.vectors
        update = None
        if self.updates_now is not None and torch.is_grad_enabled():
            update, self.updates_now = self._update_of(self.updates_now, work.n_step), None
            self.is_updated = True
        gradient = torch.zeros(vectors.shape, device=vectors.device)
        value = torch.zeros(len(vectors), device=vectors.device) if show else None
        for chunk in self.chunks(work.targets, vectors.dtype, work.votes):
            logits = chunk_logits(vectors, chunk)
            allowed = self.allowed_in(chunk, work.allowed)
            if value is not None:
                value += chunk_value(self.loss_kind, logits, chunk, allowed)
            signal = chunk_signal(self.loss_kind, logits, chunk, allowed, work.sums)
            gradient += signal @ chunk.weight
            if update is not None:
                update(chunk.rows, *work.of_rows(signal, self.bias is not None))
        if work.own is not None:
            gradient = self._shared().sum(gradient)[work.own]
            value = None if value is None else self._shared().sum(value)[work.own]
        if value is not None and work.sums is not None:
            sums = work.sums if work.own is None else work.sums[work.own]
            value += sums.masked_fill(sums == torch.inf, 0)
        return gradient, value

    def update(self, works: Sequence[RowWork], rate: float, decay: float = 0.0, epsilon: float = 1e-8) -> None:
        """Take one step of the optimiser with all micro-batches of a step; the bias never decays."""
        is_updated, self.is_updated, self.updates_now = self.is_updated, False, None
        if is_updated or not works:
            return
        works = works[0].gather(works, self.exchange) if self.exchange and not self.is_sharded else works
        update = self._update_of(UpdateRates(rate, decay, epsilon), works[0].n_step)
        gradients = zip(*(work.row_gradients(self) for work in works), strict=True)
        for (start, stop), ((gradient, of_bias), *others) in zip(pairwise(self.edges.tolist()), gradients, strict=True):
            rows = slice(start, stop)
            for other, other_bias in others:
                gradient = gradient.float() + other
                of_bias = None if of_bias is None else of_bias + other_bias
            update(rows, gradient, of_bias)

    def begin_step(self, rate: float, decay: float = 0.0, epsilon: float = 1e-8) -> None:
        """Say that the next gradient is that of a whole step, and how `update` would be called after it."""
        has_all_texts = self.exchange is None or self.is_sharded
        if self.options.passes == 1 and has_all_texts and not self.is_updated:
            self.updates_now = UpdateRates(rate, decay, epsilon)

    def _update_of(self, rates: UpdateRates, n_step: float) -> Callable[[slice, Tensor, Tensor | None], None]:
        """Begin an update; return what applies the gradients of a chunk's weights and bias."""
        self.n_updates += 1
        for_weight, for_bias = step_numbers(*rates, self.n_updates, self.weight.device)
        apply = row_update(self.options.optimizer, self.compiled)
        scale, momentum = 1.0 / n_step, self.options.momentum

        def update(rows: slice, of_weight: Tensor, of_bias: Tensor | None) -> None:
            apply(self.weight[rows], self._moments("weight", rows), of_weight, scale, for_weight, momentum)
            if self.bias is not None:
                apply(self.bias[rows], self._moments("bias", rows), of_bias, scale, for_bias, momentum)

        return update

    def logits(self, vectors: Tensor, votes: Targets | None = None) -> Iterator[tuple[int, Tensor]]:
        """Yield the first row and the logits (B, n_chunk) float32 of each chunk, from weights as they are stored."""
        vectors = vectors.to(self.weight.dtype if vectors.is_cuda else torch.float32)
        for chunk in self.chunks(None, vectors.dtype, votes):
            yield chunk.rows.start + self.rows.start, chunk_logits(vectors, chunk, exact=True)

    def all_logits(self, vectors: Tensor) -> Tensor:
        """Return the logits of all rows as one tensor, (B, n_rows) float32."""
        chunks = [logits for _, logits in self.logits(vectors)]
        return chunks[0] if len(chunks) == 1 else torch.cat(chunks, 1)

    def state(self) -> dict[str, Tensor]:
        """Return what training needs beside the weights to continue."""
        return {**self.moments, "n_updates": torch.tensor(self.n_updates)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        self.n_updates = int(state["n_updates"])
        self.moments = {
            name: value.to(self.weight.device, copy=True) for name, value in state.items() if name != "n_updates"
        }

    def chunks(self, targets: Targets | None, kind: torch.dtype, votes: Targets | None = None) -> Iterator[RowChunk]:
        """Yield neighbouring rows as numbers of type `kind`, with the targets and votes among them."""
        nothing, above = [(0, 0)] * (len(self.edges) - 1), self.rows.start
        spans, voted = (part.spans(self.edges + above) if part else nothing for part in (targets, votes))
        offset, counts = self.offset, None
        if targets is not None and self.loss_kind == "softmax":
            ones = torch.ones(len(targets.rows), device=targets.rows.device)
            counts = torch.zeros(targets.n_texts, device=ones.device).index_add_(0, targets.rows, ones)
        for (start, stop), (first, last), among in zip(pairwise(self.edges.tolist()), spans, voted, strict=True):
            rows = slice(start, stop)
            hits = shares = None
            offsets = None
            if votes is not None and votes.values is not None and among[1] > among[0]:
                some = slice(*among)
                offsets = votes.rows[some], votes.labels[some] - (above + start), votes.values[some]
            if targets is not None and last > first:
                hits = targets.rows[first:last], targets.labels[first:last] - (above + start)
                if counts is not None:
                    shares = 1 / counts[hits[0]]
                elif targets.values is not None:
                    shares = targets.values[first:last]
            bias = None if offset is None else offset[rows]
            yield RowChunk(rows, self.weight[rows].to(kind), bias, hits, shares, offsets)

    def allowed_in(self, chunk: RowChunk, allowed: Tensor | None) -> Tensor | None:
        """Return which groups of a chunk take part, (B, n_groups, 1)."""
        if allowed is None:
            return None
        first, last = ((self.rows.start + row) // self.group for row in (chunk.rows.start, chunk.rows.stop))
        return allowed[:, first:last, None]

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *more: Any) -> None:
        """Load weights; the labels of a shortlist had no biases in earlier versions, which is the same as zeros."""
        if self.bias is not None:
            state_dict.setdefault(f"{prefix}bias", torch.zeros(len(self.weight)))
        super()._load_from_state_dict(state_dict, prefix, *more)

    @property
    def _n_moments(self) -> int:
        if self.options.optimizer == "adam":
            return 2
        return 1 if self.options.momentum else 0

    def _moments(self, name: str, rows: slice) -> list[Tensor]:
        """Return the optimiser's state of some rows; allocated on first use."""
        like = getattr(self, name)
        kind = like.dtype if self.options.optimizer == "sgd" else torch.float32
        moments = []
        for number in range(self._n_moments):
            key = f"{name}_moment{number + 1}"
            if key not in self.moments:
                self.moments[key] = torch.zeros(like.shape, dtype=kind, device=like.device)
            moments.append(self.moments[key][rows])
        return moments


def _drawn(n_rows: int, width: int, bound: float, kept: range, kind: torch.dtype) -> Tensor:
    """Return some rows of a table (n_rows, width) that is drawn between −`bound` and `bound`, a few rows at a time."""
    drawn = torch.empty(len(kept), width, dtype=kind)
    for start in range(0, n_rows, _DRAWN_AT_ONCE):
        stop = min(start + _DRAWN_AT_ONCE, n_rows)
        some = torch.empty(stop - start, width).uniform_(-bound, bound)
        first, last = max(start, kept.start), min(stop, kept.stop)
        if first < last:
            drawn[first - kept.start : last - kept.start] = some[first - start : last - start].to(kind)
    return drawn
