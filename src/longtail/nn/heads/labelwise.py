"""Label-wise attention: each label attends to words, then one small network scores all labels.

    H (B, T, d)  ->  A = softmax over words of H Wᵀ    (B, T, n_labels)   W (n_labels, d): a row per label
                 ->  M = Aᵀ H                           (B, n_labels, d)
                 ->  shared ReLU layers, one output     (B, n_labels)      logits; plus a bias per label

The first shared layer is linear, so it is applied to words instead of labels: Aᵀ (H V) = (Aᵀ H) V. M, the widest
tensor, is never computed, and the second product is as narrow as that layer.

Labels are processed in chunks. The derivative of binary cross-entropy follows from the logits, so the gradients of a
chunk are computed at once, and its attention is freed before the next chunk. With 128 texts of 500 words, d = 512 and
4,271 labels, A takes 0.5 GiB in bfloat16 (a tensor with every word beside every label would take 260 GiB); a chunk of
2^26 weights, with logits and gradients in float32, takes 1 GiB.

By default the loss is the mean over texts of the sum over labels: a mean over labels makes gradients so small that
Adam's epsilon matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from longtail.labels.frequency import log_odds
from longtail.nn.batch import Targets
from longtail.nn.heads.attention import Words
from longtail.nn.heads.base import HEADS, Head, HeadInputs, as_scores, with_gradients, working_dtype
from longtail.options import Ablation, Options
from longtail.types import LabelMatrix

_ALIGNED = 8
"""Chunks are padded to a multiple of so many labels, the GPU tile size."""
_HELD = 16
"""Bytes per attention weight in a chunk, with logits and gradients."""


class LabelwiseOptions(Options):
    """Shape of label-wise attention."""

    widths: tuple[PositiveInt, ...] = Field((256,), min_length=1)
    """Units of the shared ReLU layers."""
    own_output: Ablation[bool] = False
    """Add an output layer per label to the shared one; it starts at zero."""
    reduction: Ablation[Literal["sum", "mean"]] = "sum"
    """The loss of a text: the sum over the labels that are scored, or their mean, as in the authors' code."""
    prior: Ablation[bool] = True
    """Give each label a bias that starts as its log odds in training; the authors' network has none."""
    chunk: PositiveInt = 1 << 26
    """Attention weights (texts × words × labels) computed at once; bounds memory and changes nothing else."""


class Chunk(NamedTuple):
    """Some labels, padded with places whose logit is −inf."""

    places: slice | Tensor
    """Which rows these are: neighbours, or (B, n) if each text has its own labels."""
    rows: Tensor  # (c, d) or (B, c, d), c ≥ n, in the type of large products
    offset: Tensor  # (c,) or (B, c): bias, or −inf
    outputs: Tensor | None  # (c, f) or (B, c, f)
    hits: Tensor | None  # (B, c) float32: 1 where a text has the label

    @property
    def n(self) -> int:
        """Return the number of labels without padding."""
        return self.places.stop - self.places.start if isinstance(self.places, slice) else int(self.places.shape[1])

    def filled(self) -> Chunk:
        """Return the chunk padded to a multiple of the GPU tile size."""
        more = -self.rows.shape[-2] % _ALIGNED
        tensors = (self.rows, self.outputs)
        rows, outputs = (None if tensor is None else F.pad(tensor, (0, 0, 0, more)) for tensor in tensors)
        offset = F.pad(self.offset, (0, more), value=-torch.inf)
        hits = None if self.hits is None else F.pad(self.hits, (0, more))
        return Chunk(self.places, cast(Tensor, rows), offset, outputs, hits)

    def put(self, gradient: Tensor, total: Tensor) -> None:
        """Add the gradient of these rows, (c, …) or (B, c, …), to `total`, that of all rows."""
        if isinstance(self.places, slice):
            total[self.places] += gradient[: self.n]
        else:
            total.index_add_(0, self.places.flatten(), gradient[:, : self.n].flatten(0, 1))


class Shared(nn.Module):
    """The layers that score what a label attended to; the weights of the first one are applied before attention."""

    def __init__(self, width: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.Linear(width, widths[0])
        self.inner = nn.ModuleList(nn.Linear(above, below) for above, below in pairwise(widths))
        self.last = nn.Linear(widths[-1], 1)

    def forward(self, attended: Tensor, outputs: Tensor | None, kind: torch.dtype) -> Tensor:
        """Return logits (B, c) float32 of what labels attended to (B, c, f); inner products are of type `kind`."""
        state = (attended + self.first.bias).relu()
        for layer in self.inner:
            weight, bias = cast(Tensor, layer.weight), cast(Tensor, layer.bias)
            state = (F.linear(state.to(kind), weight.to(kind)).float() + bias).relu()
        logits = F.linear(state, self.last.weight, self.last.bias).squeeze(2)
        return logits if outputs is None else logits + (state * outputs).sum(2)


@HEADS.register("labelwise")
class Labelwise(Head):
    """Scores every label with its own attention."""

    options_class = LabelwiseOptions
    reads_states = True
    recordable = True

    def __init__(
        self, width: int, n_labels: int, options: LabelwiseOptions | None = None, n_rows: int | None = None
    ) -> None:
        """Make a head for token states of `width` numbers; `n_rows` is the number of places if there is padding."""
        super().__init__()
        self.options, self.n_labels, n_rows = options or LabelwiseOptions(), n_labels, n_rows or n_labels
        widths = self.options.widths
        self.shared = Shared(width, widths)
        bound = (6 / (n_labels + width)) ** 0.5  # Xavier: attention starts nearly uniform
        self.rows = nn.Parameter(torch.empty(n_rows, width).uniform_(-bound, bound))
        self.outputs = nn.Parameter(torch.zeros(n_rows, widths[-1])) if self.options.own_output else None
        self.bias = nn.Parameter(torch.zeros(n_rows)) if self.options.prior else None

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start biases from how frequent the labels are."""
        self.begin_with(places.texts_per_label(), places.n_texts)

    def begin_with(self, counts: NDArray[np.int64], n_texts: int | NDArray[np.int64]) -> None:
        """Set the bias of each row to the log odds of `counts` (n_rows,) in `n_texts` texts."""
        if self.bias is None:
            return
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(log_odds(counts, n_texts)))

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the mean over texts of the sum or mean over labels; `inputs.vectors` are token states (B, T, d)."""
        vectors = inputs.vectors
        values = F.linear(vectors, self.shared.first.weight)
        words, n_step = self.words(vectors, values, inputs.mask), len(vectors) / share
        leaves = {"states": vectors, "values": values, **self._by_row(), **self._behind_attention()}
        learns, value, n_scored = torch.is_grad_enabled(), torch.zeros((), device=vectors.device), 0
        with torch.no_grad(), torch.autocast(vectors.device.type, enabled=False):
            sums = {name: torch.zeros(leaf.shape, device=leaf.device) for name, leaf in leaves.items() if learns}
            for chunk in self.training_chunks(words, targets):
                logits = self._learn(words, chunk, sums) if learns else self.logits(words, chunk)
                value += F.softplus(torch.where(_hits(chunk) > 0, -logits, logits)).sum()
                n_scored += chunk.n
            n_step *= n_scored if self.options.reduction == "mean" else 1
            value /= n_step
            gradients = [total.div_(n_step) for total in sums.values()]
        return with_gradients(value, list(leaves.values()), gradients) if learns else value

    def _learn(self, words: Words, chunk: Chunk, sums: Mapping[str, Tensor]) -> Tensor:
        """Add a chunk's gradients to those in `sums`; return its logits (B, c)."""
        attention, attended = words.attend(chunk.rows)
        leaves = {"attended": attended}
        if chunk.outputs is not None:
            leaves["outputs"] = chunk.outputs.detach()
        for leaf in leaves.values():
            leaf.requires_grad_()
        leaves |= self._behind_attention()
        with torch.enable_grad():
            scores = self.shared(attended, leaves.get("outputs"), words.states.dtype)
        logits: Tensor = scores.detach() + chunk.offset
        signal = logits.sigmoid() - _hits(chunk)
        gradients = dict(zip(leaves, torch.autograd.grad(scores, list(leaves.values()), signal), strict=True))
        back = words.gradients(chunk.rows, attention, attended.detach(), gradients.pop("attended"))
        gradients |= {"states": back.states, "values": back.values, "rows": back.rows}
        if self.bias is not None:
            gradients["bias"] = signal.sum(0) if isinstance(chunk.places, slice) else signal
        for name, gradient in gradients.items():
            if name in self._by_row():
                chunk.put(gradient, sums[name])
            else:
                sums[name].add_(gradient)
        return logits

    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return scores and places of the k best labels; `inputs` as for `loss`."""
        logs, places = self.ranked(inputs, k)
        return as_scores(logs, places), places

    def recorded_top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best of all labels, which attend to the words at once."""
        offset = torch.zeros(len(self.rows)) if self.bias is None else self.bias
        whole = Chunk(slice(0, len(self.rows)), self.rows, offset, self.outputs, None)
        logits, places = self.logits(self.words_to_rank(inputs), whole).topk(k)
        return logits.sigmoid(), places

    @torch.no_grad()
    def ranked(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return log scores and places of the k best labels, best first; equal ones by label."""
        words = self.words_to_rank(inputs)
        with torch.autocast(inputs.vectors.device.type, enabled=False):
            logits = torch.cat([self.logits(words, chunk)[:, : chunk.n] for chunk in self._neighbours(words)], 1)
        # Sorted, because ties are common: in a text of one word all labels attend to the same.
        logs, places = F.logsigmoid(logits).sort(dim=1, descending=True, stable=True)
        return logs[:, :k], places[:, :k]

    def logits(self, words: Words, chunk: Chunk) -> Tensor:
        """Return the logits of a chunk, (B, c) float32."""
        scores = cast(Tensor, self.shared(words.attend(chunk.rows)[1], chunk.outputs, words.states.dtype))
        return scores + chunk.offset

    def labels_at(self, places: Tensor) -> Tensor:
        """Return the labels at places."""
        return places

    def words_to_rank(self, inputs: HeadInputs) -> Words:
        """Return what labels read of texts in use."""
        values = F.linear(inputs.vectors.to(self.rows.dtype), self.shared.first.weight)
        return self.words(inputs.vectors, values, inputs.mask)

    def words(self, vectors: Tensor, values: Tensor, mask: Tensor | None) -> Words:
        """Return what labels read, in the type of large products: that of autocast, else that of the weights."""
        kind = working_dtype(vectors) if torch.is_autocast_enabled(vectors.device.type) else self.rows.dtype
        return Words(vectors.detach().to(kind), values.detach().to(kind), mask)

    def labels_at_once(self, words: Words) -> int:
        """Return the number of labels per chunk."""
        n_texts, n_words, _ = words.states.shape
        return max(1, self.options.chunk // max(1, n_texts * n_words * _ALIGNED)) * _ALIGNED

    def training_chunks(self, words: Words, targets: Targets) -> Iterator[Chunk]:
        """Yield the labels that texts are trained on, and which of them each text has."""
        return self._neighbours(words, targets)

    def _neighbours(self, words: Words, targets: Targets | None = None) -> Iterator[Chunk]:
        n_texts, n, device = len(words.states), len(self.rows), words.states.device
        edges = np.append(np.arange(0, n, self.labels_at_once(words)), n).astype(np.int64)
        spans = targets.spans(edges) if targets else [(0, 0)] * (len(edges) - 1)
        for (start, stop), (first, last) in zip(pairwise(edges.tolist()), spans, strict=True):
            places, hits = slice(start, stop), None
            if targets is not None:
                hits = torch.zeros(n_texts, stop - start, device=device)
                hits[targets.rows[first:last], targets.labels[first:last] - start] = 1
            offset = torch.zeros(stop - start, device=device) if self.bias is None else self.bias[places]
            outputs = None if self.outputs is None else self.outputs[places]
            yield Chunk(places, self.rows[places].to(words.states.dtype), offset, outputs, hits).filled()

    def _by_row(self) -> dict[str, Tensor]:
        """Return the parameters that have a row per label."""
        parameters = {"rows": self.rows, "bias": self.bias, "outputs": self.outputs}
        return {name: parameter for name, parameter in parameters.items() if parameter is not None}

    def _behind_attention(self) -> dict[str, Tensor]:
        """Return the shared parameters, without the weights that are applied to words."""
        return {name: part for name, part in self.shared.named_parameters() if name != "first.weight"}

    def group_of(self, name: str) -> str:
        """Return the parameter group of a parameter; shared layers are a bottleneck."""
        return "bottleneck" if name.startswith("shared.") else "head"

    def held_bytes(self, n_texts: int, n_tokens: int) -> int:
        """Return the bytes of a step: a chunk of attention, and states and values with their gradients."""
        width = self.rows.shape[1] + self.options.widths[0]
        n_weights = n_texts * n_tokens * len(self.rows)
        return _HELD * min(self.options.chunk, n_weights) + 3 * 4 * n_texts * n_tokens * width

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        return {"n_labels": self.n_labels, "n_weights": sum(part.numel() for part in self._by_row().values())}


def _hits(chunk: Chunk) -> Tensor:
    return cast(Tensor, chunk.hits)
