"""One row of weights a label, scored and trained in chunks of labels.

    vectors (B, d)  ->  logits (B, n_rows) chunk by chunk, never all at once

The gradient of the logits is written down directly (sigmoid minus target, or the hinge's), so neither the loss nor
dense targets are needed. `gradient` gives the gradient of the vectors at once, for the encoder. The rows themselves
are updated later, in `update`: it computes each chunk's logits once more and applies the chunk's gradient at once.
That costs a third more products than keeping gradients, but no gradient of the whole table ever exists, and what
micro-batches (or other processes) add to a step is their vectors and targets, which are small.

The gradient of the rows is that of the sum over labels and the mean over texts, whatever scale the encoder's has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.nn.batch import Targets
from longtail.nn.heads.base import working_dtype
from longtail.options import Options

Loss: TypeAlias = Literal["bce", "squared_hinge"]
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
    chunk: PositiveInt = 1 << 16
    """Labels whose logits are held at once."""


@dataclass(frozen=True, eq=False)
class Work:
    """A micro-batch above a table."""

    vectors: Tensor  # (B, d)
    targets: Targets
    n_step: float
    """Texts of the whole step: what the gradient is a mean over."""
    weights: Tensor | None = None  # (B,) how much each text counts; None: all count 1
    allowed: Tensor | None = None  # (B, n_groups) bool: groups of rows that take part; None: all


class LabelTable(nn.Module):
    """Weights of labels that train themselves."""

    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self, n_rows: int, width: int, options: TableOptions, loss: Loss = "bce", bias: bool = True, group: int = 1
    ) -> None:
        """`group` neighbouring rows make a group of `Work.allowed`."""
        super().__init__()
        self.options, self.loss_kind, self.group = options, loss, group
        kind = getattr(torch, options.storage)
        bound = width**-0.5
        drawn = torch.empty(n_rows, width).uniform_(-bound, bound).to(kind)
        self.weight = nn.Parameter(drawn, requires_grad=False)
        self.bias = nn.Parameter(torch.zeros(n_rows), requires_grad=False) if bias else None
        step = max(1, options.chunk // group) * group
        self.edges = np.append(np.arange(0, n_rows, step), n_rows).astype(np.int64)
        self.moments: dict[str, Tensor] = {}
        self.n_updates = 0
        self.compiled = False

    def gradient(self, work: Work, show: bool) -> tuple[Tensor, Tensor | None]:
        """Gradient of the vectors (B, d) float32 of the sum over labels, a text; with `show`, also that sum (B,)."""
        vectors = work.vectors
        made = torch.zeros(vectors.shape, device=vectors.device)
        value = torch.zeros(len(vectors), device=vectors.device) if show else None
        for chunk in self._chunks(work.targets, vectors.dtype):
            logits = _logits(vectors, chunk)
            allowed = self._allowed(work.allowed, chunk.rows)
            if value is not None:
                value += _value(self.loss_kind, logits, chunk, allowed)
            made += _signal(self.loss_kind, logits, chunk, allowed) @ chunk.weight
        return made, value

    def update(self, works: list[Work], rate: float, decay: float = 0.0) -> None:
        """One step of the optimiser, with all micro-batches of a step."""
        self.n_updates += 1
        step = _on_device(self, rate, decay, self.n_updates)
        apply = _compiled(self.options.optimizer) if self.compiled else _PLAIN[self.options.optimizer]
        parts = [self._chunks(work.targets, work.vectors.dtype) for work in works]
        for chunks in zip(*parts, strict=True):
            gradient, bias_gradient, rows = None, None, chunks[0].rows
            for work, chunk in zip(works, chunks, strict=True):
                logits = _logits(work.vectors, chunk)
                signal = _signal(self.loss_kind, logits, chunk, self._allowed(work.allowed, rows))
                if work.weights is not None:
                    signal = signal * work.weights.to(signal.dtype)[:, None]
                own = signal.T @ work.vectors  # (n_chunk, d)
                gradient = own if gradient is None else gradient.float() + own
                if self.bias is not None:
                    own_bias = signal.sum(0, dtype=torch.float32)
                    bias_gradient = own_bias if bias_gradient is None else bias_gradient + own_bias
            scale = 1.0 / works[0].n_step
            apply(self.weight[rows], self._moments("weight", rows), gradient, scale, step, self.options.momentum)
            if self.bias is not None:
                apply(self.bias[rows], self._moments("bias", rows), bias_gradient, scale, step, self.options.momentum)

    def logits(self, vectors: Tensor) -> Iterator[tuple[int, Tensor]]:
        """First row and logits (B, n_chunk) float32 of each chunk."""
        vectors = vectors.to(working_dtype(vectors))
        for chunk in self._chunks(None, vectors.dtype):
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

    def _chunks(self, targets: Targets | None, kind: torch.dtype) -> Iterator[_Chunk]:
        spans = targets.spans(self.edges) if targets else [(0, 0)] * (len(self.edges) - 1)
        for start, stop, (first, last) in zip(self.edges[:-1].tolist(), self.edges[1:].tolist(), spans, strict=True):
            rows = slice(start, stop)
            bias = None if self.bias is None else self.bias[rows]
            hits = None
            if targets is not None and last > first:
                hits = targets.rows[first:last], targets.labels[first:last] - start
            yield _Chunk(rows, self.weight[rows].to(kind), bias, hits)

    def _allowed(self, allowed: Tensor | None, rows: slice) -> Tensor | None:
        """Which rows of a chunk take part, (B, n_groups, 1) for a view of the logits by group."""
        if allowed is None:
            return None
        return allowed[:, rows.start // self.group : rows.stop // self.group, None]

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


def _logits(vectors: Tensor, chunk: _Chunk, exact: bool = False) -> Tensor:
    """(B, n_chunk) in the type of the vectors; with `exact` in float32, without rounding the sums."""
    if exact and vectors.is_cuda and vectors.dtype != torch.float32:
        logits = torch.mm(vectors, chunk.weight.T, out_dtype=torch.float32)
        return logits if chunk.bias is None else logits + chunk.bias
    if chunk.bias is None:
        return vectors @ chunk.weight.T
    return torch.addmm(chunk.bias.to(vectors.dtype), vectors, chunk.weight.T)


def _signal(loss: Loss, logits: Tensor, chunk: _Chunk, allowed: Tensor | None) -> Tensor:
    """Derivative of the loss by each logit; overwrites the logits."""
    if loss == "bce":
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
    """Sum of the loss over the labels of a chunk, (B,)."""
    logits = logits.float()
    each = F.softplus(logits) if loss == "bce" else (1 + logits).clamp(min=0) ** 2
    if chunk.hits is not None:
        hit = logits[chunk.hits]
        each[chunk.hits] = F.softplus(-hit) if loss == "bce" else (1 - hit).clamp(min=0) ** 2
    if allowed is not None:
        each = torch.where(allowed, each.view(len(each), allowed.shape[1], -1), 0).view(each.shape)
    return each.sum(1)


def _on_device(table: LabelTable, rate: float, decay: float, n_updates: int) -> Tensor:
    """Numbers that change from step to step, as a tensor: compiled updates are then never compiled again."""
    correction = [1 - beta**n_updates for beta in _BETAS]
    values = torch.tensor([rate, decay, *correction])
    device = table.weight.device
    return values.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else values


def _sgd(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    direction = moments[0].float() * momentum + gradient.float() * scale
    _store(moments[0], direction)
    _store(weight, weight.float() * (1 - step[0] * step[1]) - step[0] * direction)


def _adam(weight: Tensor, moments: list[Tensor], gradient: Tensor, scale: float, step: Tensor, momentum: float) -> None:
    gradient = gradient.float() * scale
    first = moments[0] * _BETAS[0] + gradient * (1 - _BETAS[0])
    second = moments[1] * _BETAS[1] + gradient * gradient * (1 - _BETAS[1])
    moments[0].copy_(first)
    moments[1].copy_(second)
    change = (first / step[2]) / ((second / step[3]).sqrt() + _EPS)
    _store(weight, weight.float() * (1 - step[0] * step[1]) - step[0] * change)


def _store(place: Tensor, value: Tensor) -> None:
    """Write float32 numbers; into bfloat16 by rounding up or down at random, so that the mean is kept."""
    if place.dtype == torch.float32:
        place.copy_(value)
        return
    noise = torch.randint(0, _LOW_BITS, value.shape, dtype=torch.int32, device=value.device)
    bits = (value.contiguous().view(torch.int32) + noise) & -_LOW_BITS
    place.copy_(bits.view(torch.float32))


_PLAIN: dict[str, Callable[..., None]] = {"sgd": _sgd, "adam": _adam}
_COMPILED: dict[str, Any] = {}


def _compiled(name: str) -> Callable[..., None]:
    if name not in _COMPILED:
        _COMPILED[name] = torch.compile(_PLAIN[name], dynamic=True)
    made: Callable[..., None] = _COMPILED[name]
    return made
