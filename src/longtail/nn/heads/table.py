"""One row of weights a label, scored and trained in chunks of labels.

    vectors (B, d)  ->  logits (B, n_rows) chunk by chunk, never all at once

The gradient of the logits is written down directly (sigmoid minus target, or the hinge's), so neither the loss nor
dense targets are needed. `gradient` gives the gradient of the vectors at once, for the encoder. The rows themselves
are updated later, in `update`: it computes each chunk's logits once more and applies the chunk's gradient at once.
That costs a third more products than keeping gradients, but no gradient of the whole table ever exists, and what
micro-batches (or other processes) add to a step is their vectors and targets, which are small. What adds to a step
need only say the gradient of each chunk of rows (`RowWork`); `Work` does so with all rows, `candidates` with a few.

Rows may be padding: their logits are −inf, so that they have no loss, no gradient and never win.

The gradient of the rows is that of the sum over labels and the mean over texts, whatever scale the encoder's has.

A softmax over the labels needs each text's log of the sum of all exponents before any gradient (`log_sums`): one more
pass over the chunks. Its targets are a text's labels in equal parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.labels.frequency import log_odds, smoothed_share
from longtail.nn.batch import Targets
from longtail.nn.noise import random_bits
from longtail.options import Options

Loss: TypeAlias = Literal["bce", "squared_hinge", "softmax"]
_EPS = 1e-8
_BETAS = 0.9, 0.999
_LOW_BITS = 1 << 16


class TableOptions(Options):
    """How the rows of labels are kept and trained."""

    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, or gradient descent with momentum: less memory, and better for hundreds of thousands of labels."""
    momentum: float = Field(0.9, ge=0, lt=1)
    """sgd: what is kept of the last direction."""
    storage: Literal["float32", "bfloat16"] = "float32"
    """bfloat16 halves the memory; updates are then rounded up or down at random, so that small ones are not lost."""
    prior: bool = True
    """Start from each label's frequency: its bias is its log odds in training (with a softmax the log of its share, −1
    with a hinge). Otherwise the first epoch goes by while hundreds of wrong labels a text are pushed down, and the
    encoder with them."""
    chunk: PositiveInt = 1 << 16
    """Labels whose logits are held at once."""


class RowWork(Protocol):
    """What a micro-batch adds to a step of a table."""

    @property
    def n_step(self) -> float:
        """Texts of the whole step: what the gradient is a mean over."""

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """Gradient of the weights (n_chunk, d) and of the bias (n_chunk,) of each chunk of rows, summed over texts."""


@dataclass(frozen=True, eq=False)
class Work:
    """A micro-batch above a table."""

    vectors: Tensor  # (B, d)
    targets: Targets
    n_step: float
    weights: Tensor | None = None  # (B,) how much each text counts for the rows; None: all count 1
    allowed: Tensor | None = None  # (B, n_groups) bool: groups of rows that take part; None: all
    sums: Tensor | None = None  # (B,) softmax: see `log_sums`
    votes: Targets | None = None  # what is added to logits

    def row_gradients(self, table: LabelTable) -> Iterator[tuple[Tensor, Tensor | None]]:
        """See `RowWork`."""
        for chunk in table.chunks(self.targets, self.vectors.dtype, self.votes):
            allowed = table.allowed_in(chunk, self.allowed)
            signal = _signal(table.loss_kind, _logits(self.vectors, chunk), chunk, allowed, self.sums)
            if self.weights is not None:
                signal = signal * self.weights.to(signal.dtype)[:, None]
            of_bias = None if table.bias is None else signal.sum(0, dtype=torch.float32)
            yield signal.T @ self.vectors, of_bias


class LabelTable(nn.Module):
    """Weights of labels that train themselves."""

    weight: nn.Parameter
    bias: nn.Parameter | None
    shut: Tensor | None
    """(n_rows,) −inf where a row is padding, else 0."""

    def __init__(
        self,
        n_rows: int,
        width: int,
        options: TableOptions,
        loss: Loss = "bce",
        bias: bool = True,
        group: int = 1,
        real: NDArray[np.bool_] | None = None,
        bound: float | None = None,
    ) -> None:
        """`group` neighbouring rows make a group of `Work.allowed`.

        `real` (n_rows,) is false where a row is padding; a table with padding has no bias. Weights begin between
        −`bound` and `bound`, by default 1/√width.
        """
        super().__init__()
        if bias and real is not None:
            raise ValueError("a table with padding must be made without a bias")
        self.options, self.loss_kind, self.group = options, loss, group
        kind = getattr(torch, options.storage)
        bound = width**-0.5 if bound is None else bound
        drawn = torch.empty(n_rows, width).uniform_(-bound, bound).to(kind)
        self.weight = nn.Parameter(drawn, requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(n_rows), requires_grad=False) if bias else None
        shut = None if real is None else torch.where(torch.from_numpy(real), 0.0, -torch.inf)
        self.register_buffer("shut", shut, persistent=False)
        step = max(1, options.chunk // group) * group
        self.edges = np.append(np.arange(0, n_rows, step), n_rows).astype(np.int64)
        self.moments: dict[str, Tensor] = {}
        self.n_updates = 0
        self.compiled = False
        self.gather: Callable[[Sequence[RowWork]], Sequence[RowWork]] | None = None
        """With several processes: brings together what all of them add to a step."""

    @property
    def offset(self) -> Tensor | None:
        """What is added to each logit, (n_rows,)."""
        return self.bias if self.shut is None else self.shut

    @property
    def n_at_once(self) -> int:
        """Rows of the largest chunk."""
        return int(np.diff(self.edges).max())

    @property
    def moment_bytes(self) -> int:
        """What the optimiser remembers: one number of the storage a weight (sgd), or two of float32 (adam)."""
        if self.options.optimizer == "sgd":
            return sum(parameter.numel() * parameter.element_size() for parameter in self.parameters())
        return 8 * sum(parameter.numel() for parameter in self.parameters())

    def begin(self, counts: NDArray[np.int64], n_texts: int) -> None:
        """Set the bias by how many of the training texts each row has."""
        if self.bias is None or not self.options.prior:
            return
        if self.loss_kind == "bce":
            begins = log_odds(counts, n_texts)
        elif self.loss_kind == "softmax":
            begins = np.log(smoothed_share(counts, n_texts)).astype(np.float32)
        else:
            begins = np.full(len(counts), -1, np.float32)
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(begins))

    def log_sums(self, vectors: Tensor, targets: Targets) -> Tensor:
        """Log of the sum of all exponents of logits, (B,) float32; inf for texts without labels: they teach nothing."""
        found = [_logits(vectors, chunk).float().logsumexp(1) for chunk in self.chunks(None, vectors.dtype)]
        alone = torch.ones(len(vectors), dtype=torch.bool, device=vectors.device)
        alone[targets.rows] = False
        return torch.stack(found).logsumexp(0).masked_fill_(alone, torch.inf)

    def gradient(self, work: Work, show: bool) -> tuple[Tensor, Tensor | None]:
        """Gradient of the vectors (B, d) float32 of the sum over labels, a text; with `show`, also that sum (B,)."""
        vectors = work.vectors
        made = torch.zeros(vectors.shape, device=vectors.device)
        value = torch.zeros(len(vectors), device=vectors.device) if show else None
        for chunk in self.chunks(work.targets, vectors.dtype, work.votes):
            logits = _logits(vectors, chunk)
            allowed = self.allowed_in(chunk, work.allowed)
            if value is not None:
                value += _value(self.loss_kind, logits, chunk, allowed)
            made += _signal(self.loss_kind, logits, chunk, allowed, work.sums) @ chunk.weight
        if value is not None and work.sums is not None:
            value += work.sums.masked_fill(work.sums == torch.inf, 0)
        return made, value

    def update(self, works: Sequence[RowWork], rate: float, decay: float = 0.0) -> None:
        """One step of the optimiser, with all micro-batches of a step; the bias never decays."""
        if not works:
            return
        works = self.gather(works) if self.gather else works
        self.n_updates += 1
        for_weight, for_bias = _on_device(self, rate, decay, self.n_updates)
        apply = _compiled(self.options.optimizer) if self.compiled else _PLAIN[self.options.optimizer]
        scale, momentum = 1.0 / works[0].n_step, self.options.momentum
        parts = [work.row_gradients(self) for work in works]
        for start, stop, *found in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), *parts, strict=True):
            rows = slice(start, stop)
            (gradient, of_bias), *others = found
            for other, other_bias in others:
                gradient = gradient.float() + other
                of_bias = None if of_bias is None else of_bias + other_bias
            apply(self.weight[rows], self._moments("weight", rows), gradient, scale, for_weight, momentum)
            if self.bias is not None:
                apply(self.bias[rows], self._moments("bias", rows), of_bias, scale, for_bias, momentum)

    def logits(self, vectors: Tensor, votes: Targets | None = None) -> Iterator[tuple[int, Tensor]]:
        """First row and logits (B, n_chunk) float32 of each chunk: weights are used as they are stored, not rounded."""
        vectors = vectors.to(self.weight.dtype if vectors.is_cuda else torch.float32)
        for chunk in self.chunks(None, vectors.dtype, votes):
            yield chunk.rows.start, _logits(vectors, chunk, exact=True)

    def state(self) -> dict[str, Tensor]:
        """What training needs beside the weights to go on."""
        return {**self.moments, "n_updates": torch.tensor(self.n_updates)}

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state` gave."""
        self.n_updates = int(state["n_updates"])
        self.moments = {
            name: value.to(self.weight.device, copy=True) for name, value in state.items() if name != "n_updates"
        }

    def chunks(self, targets: Targets | None, kind: torch.dtype, votes: Targets | None = None) -> Iterator[_Chunk]:
        """Neighbouring rows as numbers of a kind, with the targets and votes that lie among them."""
        nothing = [(0, 0)] * (len(self.edges) - 1)
        spans, voted = (part.spans(self.edges) if part else nothing for part in (targets, votes))
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
                offsets = votes.rows[some], votes.labels[some] - start, votes.values[some]
            if targets is not None and last > first:
                hits = targets.rows[first:last], targets.labels[first:last] - start
                shares = 1 / counts[hits[0]] if counts is not None else None
            bias = None if offset is None else offset[rows]
            yield _Chunk(rows, self.weight[rows].to(kind), bias, hits, shares, offsets)

    def allowed_in(self, chunk: _Chunk, allowed: Tensor | None) -> Tensor | None:
        """Which rows of a chunk take part, (B, n_groups, 1) for a view of the logits by group."""
        if allowed is None:
            return None
        return allowed[:, chunk.rows.start // self.group : chunk.rows.stop // self.group, None]

    def _moments(self, name: str, rows: slice) -> list[Tensor]:
        """The optimiser's memory of some rows; made on first use."""
        like = getattr(self, name)
        kind = like.dtype if self.options.optimizer == "sgd" else torch.float32
        found = []
        for number in range({"sgd": 1, "adam": 2}[self.options.optimizer]):
            key = f"{name}_moment{number + 1}"
            if key not in self.moments:
                self.moments[key] = torch.zeros(like.shape, dtype=kind, device=like.device)
            found.append(self.moments[key][rows])
        return found


class _Chunk(NamedTuple):
    """Neighbouring rows of a table."""

    rows: slice
    weight: Tensor  # (n_chunk, d)
    bias: Tensor | None  # (n_chunk,)
    hits: tuple[Tensor, Tensor] | None
    """Texts that have a label among them, and its place in the chunk."""
    shares: Tensor | None
    """softmax: of each of these, one by how many labels the text has."""
    votes: tuple[Tensor, Tensor, Tensor] | None = None
    """Texts, places in the chunk, and what is added to their logits."""


def _logits(vectors: Tensor, chunk: _Chunk, exact: bool = False) -> Tensor:
    """(B, n_chunk) in the type of the vectors; with `exact` in float32 on a GPU, without rounding the sums."""
    if exact and vectors.is_cuda and vectors.dtype != torch.float32:
        logits = torch.mm(vectors, chunk.weight.T, out_dtype=torch.float32)
        logits = logits if chunk.bias is None else logits + chunk.bias
    elif chunk.bias is None:
        logits = vectors @ chunk.weight.T
    else:
        logits = torch.addmm(chunk.bias.to(vectors.dtype), vectors, chunk.weight.T)
    if chunk.votes is not None:
        *places, values = chunk.votes
        logits.index_put_(tuple(places), values.to(logits.dtype), accumulate=True)
    return logits


def _signal(loss: Loss, logits: Tensor, chunk: _Chunk, allowed: Tensor | None, sums: Tensor | None = None) -> Tensor:
    """Derivative of the loss by each logit; overwrites the logits."""
    if sums is not None:
        signal = logits.sub_(sums[:, None]).exp_()
        if chunk.hits is not None and chunk.shares is not None:
            signal[chunk.hits] -= chunk.shares.to(signal.dtype)
    elif loss == "bce":
        signal = logits.sigmoid_()
        if chunk.hits is not None:
            signal[chunk.hits] -= 1
    else:
        hit = None if chunk.hits is None else logits[chunk.hits]
        signal = logits.add_(1).clamp_(min=0).mul_(2)
        if hit is not None:
            signal[chunk.hits] = -2 * (1 - hit).clamp(min=0)
    if allowed is None:
        return signal
    grouped = signal.view(len(signal), allowed.shape[1], -1)
    return torch.where(allowed, grouped, 0).view(signal.shape)


def _value(loss: Loss, logits: Tensor, chunk: _Chunk, allowed: Tensor | None) -> Tensor:
    """Sum of the loss over the labels of a chunk, (B,); of a softmax without the log of the sum of exponents."""
    logits = logits.float()
    if loss == "softmax":
        made = torch.zeros(len(logits), device=logits.device)
        if chunk.hits is not None and chunk.shares is not None:
            made.index_add_(0, chunk.hits[0], -logits[chunk.hits] * chunk.shares)
        return made
    each = F.softplus(logits) if loss == "bce" else (1 + logits).clamp(min=0) ** 2
    if chunk.hits is not None:
        hit = logits[chunk.hits]
        each[chunk.hits] = F.softplus(-hit) if loss == "bce" else (1 - hit).clamp(min=0) ** 2
    if allowed is not None:
        each = torch.where(allowed, each.view(len(each), allowed.shape[1], -1), 0).view(each.shape)
    return each.sum(1)


def _on_device(table: LabelTable, rate: float, decay: float, n_updates: int) -> tuple[Tensor, Tensor]:
    """Numbers that change from step to step, for weights and for a bias.

    As tensors: compiled updates are then never compiled again.
    """
    correction = [1 - beta**n_updates for beta in _BETAS]
    seed = float(torch.randint(1 << 24, ()))  # a whole number that float32 holds
    values = torch.tensor([[rate, decay, *correction, seed], [rate, 0.0, *correction, seed]])
    device = table.weight.device
    values = values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values
    return values[0], values[1]


def _sgd(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    direction = moments[0].float() * momentum + gradient.float() * scale
    value = weight.float() * (1 - step[0] * step[1]) - step[0] * direction
    _store(moments[0], direction, step[4], 0)
    _store(weight, value, step[4], 16)


def _adam(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    gradient = gradient.float() * scale
    first = moments[0] * _BETAS[0] + gradient * (1 - _BETAS[0])
    second = moments[1] * _BETAS[1] + gradient * gradient * (1 - _BETAS[1])
    moments[0].copy_(first)
    moments[1].copy_(second)
    change = (first / step[2]) / ((second / step[3]).sqrt() + _EPS)
    _store(weight, weight.float() * (1 - step[0] * step[1]) - step[0] * change, step[4], 0)


def _store(place: Tensor, value: Tensor, seed: Tensor, shift: int) -> None:
    """Write float32 numbers; into bfloat16 by rounding up or down at random (16 bits of noise): the mean stays."""
    if place.dtype == torch.float32:
        place.copy_(value)
        return
    noise = (random_bits(place, seed) >> shift) & (_LOW_BITS - 1)
    bits = (value.contiguous().view(torch.int32) + noise) & -_LOW_BITS
    place.copy_(bits.view(torch.float32))


_PLAIN: dict[str, Callable[..., None]] = {"sgd": _sgd, "adam": _adam}
_COMPILED: dict[str, Any] = {}


def _compiled(name: str) -> Callable[..., None]:
    if name not in _COMPILED:
        _COMPILED[name] = torch.compile(_PLAIN[name], dynamic=True)
    made: Callable[..., None] = _COMPILED[name]
    return made
