"""Adaptive head: frequent labels at full width, rare ones in narrow tails behind a gate (docs/methods/aplc-xlnet.md).

    vectors (B, d) -> linear -> tanh -> dropout = inner (B, d_h)                       the bottleneck
    inner -> linear -> logits of the frequent labels (B, l_h), a gate per tail (B, K)   the root
    (fixed log odds from training are added to all logits)
    inner -> linear to d_h / q^i -> LayerNorm -> ReLU -> linear -> logits (B_i, l_i)    tail i = 1 … K

    p(frequent label) = σ(z)        p(label of tail i) = σ(r_i)·σ(s)

In training a tail sees only the B_i texts that have a label in it; every other text trains its gate to stay shut. Which
texts these are is computed on the host, so that the device never waits. A tail that no text of the batch touches has no
gradient in that step (data-parallel training must allow for unused parameters).

The product of two sigmoids is never formed. Its logit is t = r + s − log(1 + e^r + e^s), so that −log(1 − p) is
softplus(t), exact where the product would round to one. Everything is computed in float32, with autocast off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from longtail.errors import ConfigError
from longtail.labels.buckets import BucketOptions, Buckets, build_buckets
from longtail.labels.frequency import log_odds
from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.base import HEADS, Head, HeadInputs, LabelSpace, required
from longtail.options import Ablation, Options
from longtail.types import LabelMatrix


class AdaptiveOptions(Options):
    """Shape and loss of the adaptive head."""

    bottleneck: PositiveInt | None = None
    """Width of the layer between the encoder and the labels. By default as wide as the encoder."""
    activation: Ablation[Literal["tanh", "none"]] = "tanh"
    """After the bottleneck; the paper names none, the released code has tanh."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """After the bottleneck, in training."""
    shrink: PositiveInt = 2
    """q: tail i is q^i times narrower than the bottleneck."""
    tails: Ablation[Literal["normed", "linear"]] = "normed"
    """Between the two matrices of a tail: LayerNorm and ReLU, or nothing."""
    gates: Ablation[Literal["always", "touched"]] = "always"
    """`always`: a gate also learns to stay shut for texts without a label in its tail. `touched`: it learns only from
    texts with one."""
    normaliser: Ablation[Literal["per_text", "per_batch"]] = "per_text"
    """`per_text`: the mean over texts of their loss per term. `per_batch`: the sum of losses over the sum of terms of
    the texts that are computed together (a micro-batch where a batch is cut)."""
    prior: Ablation[bool] = True
    """Add the log odds of each label (in a tail: among the texts that touch it) and of each gate to the logits. These
    are fixed numbers; the layers have no biases, as in the paper. Without them the first epochs are spent on pushing
    thousands of wrong labels per text down, and the encoder with them."""
    head_in_root: Ablation[bool] = True
    """False puts the first bucket into a tail of its own, which is not narrowed (q^0) but otherwise like the others;
    the root then holds gates only."""


@HEADS.register("adaptive")
class Adaptive(Head):
    """Frequent labels in the root, rare ones in tails."""

    options_class = AdaptiveOptions
    has_logits = True
    recordable = True

    prior: Tensor
    """(l_h + K,) Added to the logits of the root."""
    touch: Tensor
    """(K,) Share of the training texts with a label in each tail, for which the tail is computed."""

    def __init__(self, width: int, buckets: Buckets, options: AdaptiveOptions) -> None:
        super().__init__()
        inner = options.bottleneck or width
        sizes = [int(size) for size in buckets.sizes]
        widths = tail_widths(inner, len(sizes), options)
        self.options, self.n_labels, self.order = options, buckets.n_labels, buckets.order
        self.sizes = sizes
        self.n_root = sizes[0] if options.head_in_root else 0
        self.edges: NDArray[np.int64] = np.append(0, buckets.edges[-len(widths) - 1 :])  # of the root and each tail
        self.bottleneck = nn.Linear(width, inner)
        self.dropout = nn.Dropout(options.dropout)
        self.root = nn.Linear(inner, self.n_root + len(widths), bias=False)
        self.tails = nn.ModuleList(
            _Tail(inner, narrow, size, options.tails == "normed")
            for narrow, size in zip(widths, sizes[len(sizes) - len(widths) :], strict=True)
        )
        self.register_buffer("prior", torch.zeros(self.root.out_features))
        self.register_buffer("touch", torch.ones(len(widths)))

    @classmethod
    def create(cls, width: int, labels: LabelSpace, options: AdaptiveOptions | None = None) -> Adaptive:
        """Return a new head for text vectors of `width` numbers."""
        buckets = build_buckets(required(labels.counts, "counts"), BucketOptions())
        return cls(width, buckets, options or AdaptiveOptions())

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start from how frequent the labels are, and note which share of the texts touches each tail."""
        texts = np.repeat(np.arange(places.n_texts), places.labels_per_text())
        spans = list(pairwise(self.edges.tolist()))[1:]
        touched = [len(np.unique(texts[(places.indices >= start) & (places.indices < stop)])) for start, stop in spans]
        self.touch.copy_(torch.tensor(touched) / max(places.n_texts, 1))
        if not self.options.prior:
            return
        counts = places.texts_per_label()
        self.prior.copy_(torch.from_numpy(log_odds(np.append(counts[: self.n_root], touched), places.n_texts)))
        for number, ((start, stop), n_texts) in enumerate(zip(spans, touched, strict=True)):
            self.tails.get_buffer(f"{number}.prior").copy_(torch.from_numpy(log_odds(counts[start:stop], n_texts)))

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the binary cross-entropy over root labels, labels of touched tails, and the other gates."""
        with _autocast_off(inputs.vectors):
            inner, logits, gates = self._root(inputs.vectors)
            plan = self._plan(targets, inner)
            costs = self._root_costs(logits, targets)
            if self.options.gates == "always":
                costs = costs + _softplus(gates).masked_fill(plan.touched, 0).sum(1)
            for number, (rows, inverse, columns) in plan.tails.items():
                tail_logits = self.tails[number](inner.index_select(0, rows))  # (B_i, l_i)
                gate = gates[:, number].index_select(0, rows)
                costs = costs.index_add(0, rows, tail_cost(gate, tail_logits, inverse, columns))
            return (costs * plan.weights).sum() * share

    @torch.no_grad()
    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return probabilities and places of the k best labels, by log p (docs/methods/aplc-xlnet.md#prediction).

        A label is never more likely than its gate, so a tail is computed only for texts whose gate beats their k-th
        best label so far; the result is the same. Selecting these texts waits for the device once per tail, from the
        first tail after k labels were seen. Ties in log p: the earlier bucket first, then the larger logit.
        """
        with _autocast_off(inputs.vectors):
            inner, logits, gates = self._root(inputs.vectors)
            gates = F.logsigmoid(gates)
            best, places = logits.topk(min(k, self.n_root))
            best = F.logsigmoid(best)
            for number, tail in enumerate(self.tails):
                start = int(self.edges[number + 1])
                if start < k:  # too few labels so far to leave any out
                    best, places = _merged(best, places, tail(inner), gates[:, number], start, k)
                    continue
                rows = (gates[:, number] > best[:, -1]).nonzero().squeeze(1)
                if len(rows):
                    tail_logits, gate = tail(inner[rows]), gates[rows, number]
                    better, at = _merged(best[rows], places[rows], tail_logits, gate, start, k)
                    best, places = best.index_copy(0, rows, better), places.index_copy(0, rows, at)
            return best.exp(), places

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best of all labels; every tail is computed for every text."""
        logs, places = self.log_scores(inputs.vectors).topk(k)
        return logs.exp(), places

    def log_scores(self, vectors: Tensor) -> Tensor:
        """Return log p of every label (B, n_labels), by place: for references and small label sets."""
        with _autocast_off(vectors):
            inner, logits, gates = self._root(vectors)
            behind = [
                F.logsigmoid(gates[:, [number]]) + F.logsigmoid(tail(inner)) for number, tail in enumerate(self.tails)
            ]
            return torch.cat([F.logsigmoid(logits), *behind], 1)

    def logit_of(self, vectors: Tensor, place: int) -> Tensor:
        """Return the log odds of the label at a place for each text, (B,)."""
        logs = self.log_scores(vectors)[:, place].double()
        return (logs - torch.log1p(-logs.exp())).float()

    def group_of(self, name: str) -> str:
        """Return the parameter group of a parameter; the bottleneck has its own."""
        return "bottleneck" if name.startswith("bottleneck.") else "head"

    def facts(self) -> dict[str, Any]:
        """Return sizes, and what the buckets save on these texts."""
        inner = self.root.in_features
        touch = None if self.touch.is_meta else self.touch.tolist()  # an outline has no numbers
        return {
            "n_parameters": sum(parameter.numel() for parameter in self.parameters()),
            "buckets": list(self.sizes),
            "tail_widths": tail_widths(inner, len(self.sizes), self.options),
            **ratios(inner, self.sizes, self.options, touch),
        }

    def _root(self, vectors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return inner vectors (B, d_h), logits of the frequent labels (B, l_h) and gates (B, K)."""
        inner = self.bottleneck(vectors.to(self.bottleneck.weight.dtype))
        inner = self.dropout(torch.tanh(inner) if self.options.activation == "tanh" else inner)
        logits, gates = (self.root(inner) + self.prior).split_with_sizes([self.n_root, len(self.tails)], 1)
        return inner, logits, gates

    def _root_costs(self, logits: Tensor, targets: Targets) -> Tensor:
        """Return the binary cross-entropy of each text over the frequent labels (B,)."""
        stop = int(np.searchsorted(targets.host_labels, self.n_root))
        truth = torch.zeros_like(logits)
        truth[targets.rows[:stop], targets.labels[:stop]] = truth.new_ones(
            ()
        )  # a plain 1 would be copied to the device
        return F.binary_cross_entropy_with_logits(logits, truth, reduction="none").sum(1)

    def _plan(self, targets: Targets, like: Tensor) -> _Plan:
        """Return which texts touch which tails, and the weight of each text, from ids on the host."""
        spans = targets.spans(self.edges)[1:]
        ids: list[NDArray[np.int64]] = []
        touched = np.zeros((targets.n_texts, len(spans)), bool)
        for number, (start, stop) in enumerate(spans):
            rows, inverse = np.unique(targets.host_rows[start:stop], return_inverse=True)
            touched[rows, number] = True
            ids += [rows, inverse]
        weights = self._weights(touched)
        table = on_device(np.column_stack([weights, touched]).astype(np.float32), like.device)
        flat = on_device(np.concatenate([*ids, np.zeros(0, np.int64)]), like.device)
        by_tail = flat.split_with_sizes([len(array) for array in ids])
        tails = {
            number: (
                by_tail[2 * number],
                by_tail[2 * number + 1],
                targets.labels[start:stop] - int(self.edges[number + 1]),
            )
            for number, (start, stop) in enumerate(spans)
            if stop > start
        }
        return _Plan(tails, table[:, 1:] > 0, table[:, 0].to(like.dtype))

    def _weights(self, touched: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the factor of each text's summed cost (B,), from its number of terms n_i."""
        counted = np.where(touched, np.diff(self.edges)[1:], self.options.gates == "always")
        terms = self.n_root + counted.sum(1)
        divisors = terms.sum() if self.options.normaliser == "per_batch" else terms * len(terms)
        weights: NDArray[np.float64] = np.broadcast_to(1 / np.maximum(divisors, 1), terms.shape)
        return weights  # without terms there is no cost either


@dataclass(frozen=True)
class _Plan:
    """What is computed for a batch."""

    tails: dict[int, tuple[Tensor, Tensor, Tensor]]
    """By touched tail: its texts (B_i,); for each of its targets the row of the text among these, and the column of the
    label in the tail."""
    touched: Tensor  # (B, K) bool
    weights: Tensor  # (B,)


class _Tail(nn.Module):
    """Labels of one rare bucket: a narrow layer, then logits."""

    prior: Tensor  # (n_labels,)

    def __init__(self, width: int, narrow: int, n_labels: int, normed: bool) -> None:
        super().__init__()
        self.narrow = nn.Linear(width, narrow, bias=False)
        self.norm = nn.LayerNorm(narrow) if normed else None
        self.labels = nn.Linear(narrow, n_labels, bias=False)
        self.register_buffer("prior", torch.zeros(n_labels))

    def forward(self, inner: Tensor) -> Tensor:
        """Return logits (n, n_labels), without the gate."""
        narrow = self.narrow(inner)
        logits: Tensor = self.labels(narrow if self.norm is None else F.relu(self.norm(narrow)))
        return logits + self.prior


def tail_cost(gates: Tensor, logits: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return the binary cross-entropy of σ(r)·σ(s) summed over a tail, (n,), from gates r (n,) and logits s (n, l).

    Text `rows[i]` has label `columns[i]`; a target that occurs twice counts once.
    """
    costs: Tensor = _TailCost.apply(gates, logits, rows, columns)  # type: ignore[no-untyped-call]
    return costs


class _TailCost(torch.autograd.Function):
    """Tail cost with an explicit gradient: exact everywhere, and only the logits are kept for it."""

    @staticmethod
    def forward(ctx: Any, gates: Tensor, logits: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """Return the cost of each text."""
        ctx.save_for_backward(gates, logits, rows, columns)
        costs = _softplus(joint_logit(gates[:, None], logits))  # −log(1 − p)
        costs[rows, columns] = _softplus(-gates[rows]) + _softplus(-logits[rows, columns])  # −log p
        return costs.sum(1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        """Return gradients; with t the joint logit, ∂t/∂s = (1 + e^r)/(1 + e^r + e^s) = σ(softplus(r) − s)."""
        gates, logits, rows, columns = ctx.saved_tensors
        gate = gates[:, None]
        by_gate = torch.sigmoid(joint_logit(gate, logits))  # p, the derivative by t
        by_logit = torch.sigmoid(_softplus(gate) - logits).mul_(by_gate)
        by_gate.mul_((_softplus(logits) - gate).sigmoid_())
        by_logit[rows, columns] = -torch.sigmoid(-logits[rows, columns])
        by_gate[rows, columns] = -torch.sigmoid(-gates[rows])
        return grad * by_gate.sum(1), by_logit.mul_(grad[:, None]), None, None


def joint_logit(gate: Tensor, logit: Tensor) -> Tensor:
    """Return the logit of σ(r)·σ(s), r + s − log(1 + e^r + e^s), ordered so that large numbers never cancel."""
    low, high = torch.minimum(gate, logit), torch.maximum(gate, logit)
    rest = torch.exp(-high.abs()) + torch.exp(low - high.clamp(min=0))
    return low + high.clamp(max=0) - torch.log1p(rest)


def tail_widths(inner: int, n_buckets: int, options: AdaptiveOptions) -> list[int]:
    """Return the width of each tail, d_h / q^i rounded down."""
    first = 1 if options.head_in_root else 0
    widths = [inner // options.shrink**power for power in range(first, n_buckets)]
    least = 1 if options.tails == "linear" else 2  # a LayerNorm of one number is constant
    if widths and widths[-1] < least:
        raise ConfigError(
            f"the bottleneck must be at least {least * options.shrink ** (n_buckets - 1)} wide for {n_buckets} buckets "
            f"and shrink={options.shrink}, got {inner}; make it wider, or give fewer buckets or a smaller shrink"
        )
    return widths


def count_parameters(inner: int, sizes: Sequence[int], options: AdaptiveOptions) -> int:
    """Return the number of parameters of root and tails (Eq. 6, and 2·h_i per LayerNorm), without the bottleneck."""
    widths = tail_widths(inner, len(sizes), options)
    root, behind = sizes[: len(sizes) - len(widths)], sizes[len(sizes) - len(widths) :]
    norm = 0 if options.tails == "linear" else 2
    tails = sum(narrow * (inner + size + norm) for narrow, size in zip(widths, behind, strict=True))
    return inner * (sum(root) + len(widths)) + tails


def ratios(
    inner: int, sizes: Sequence[int], options: AdaptiveOptions, touch: Sequence[float] | None = None
) -> dict[str, float]:
    """Return what buckets save compared with one dense layer (d_h, n_labels).

    `size_ratio` is the number of parameters over the dense layer's. `compute_ratio` is the number of products of the
    dense layer over those of root and tails, d·L / (d·(l_h + K) + Σ p_i·h_i·(d + l_i)), larger is faster
    (docs/methods/aplc-xlnet.md#cost); `touch` gives p_i for each tail, the share of texts it is computed for in
    training, by default 1.
    """
    dense, widths = inner * sum(sizes), tail_widths(inner, len(sizes), options)
    root, behind = sizes[: len(sizes) - len(widths)], sizes[len(sizes) - len(widths) :]
    shares = [1.0] * len(behind) if touch is None else touch
    tails = sum(share * width * (inner + size) for share, width, size in zip(shares, widths, behind, strict=True))
    work = inner * (sum(root) + len(widths)) + tails
    return {"size_ratio": count_parameters(inner, sizes, options) / dense, "compute_ratio": dense / work}


def _merged(best: Tensor, places: Tensor, logits: Tensor, gate: Tensor, start: int, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best of those so far and of a tail with these logits whose first place is `start`."""
    top, at = logits.topk(min(k, logits.shape[1]))
    scores = torch.cat([best, gate[:, None] + F.logsigmoid(top)], 1)
    scores, order = scores.sort(dim=1, descending=True, stable=True)
    return scores[:, :k], torch.cat([places, at + start], 1).gather(1, order[:, :k])


def _softplus(logits: Tensor) -> Tensor:
    """Return log(1 + e^x) without torch's cut-off at 20."""
    return -F.logsigmoid(-logits)


def _autocast_off(vectors: Tensor) -> torch.autocast:
    return torch.autocast(vectors.device.type, enabled=False)
