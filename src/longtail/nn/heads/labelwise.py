"""Label-wise attention: each label looks at the words that matter to it, then one small network scores all labels.

    H (B, T, d)  ->  A = softmax over words of H Wᵀ    (B, T, n_labels)   W (n_labels, d): a row a label
                 ->  M = Aᵀ H                           (B, n_labels, d)
                 ->  shared ReLU layers, one output     (B, n_labels)      logits; plus a bias of the label's own

The first shared layer is linear, so it is applied to words instead of labels: Aᵀ (H V) = (Aᵀ H) V. M, the widest of
all, is never made, and the second product is as narrow as that layer.

Labels go through in chunks. The derivative of binary cross-entropy by the logits is known as soon as they are, so a
chunk's gradients are computed at once, and its attention is forgotten before the next one begins. With 128 texts of 500
words, d = 512 and 4,271 labels, A takes 0.5 GiB in bfloat16 (every word beside every label would take 260 GiB); a chunk
of 2^26 weights, with logits and gradients in float32, 1 GiB.

The loss is the mean over texts of the sum over labels: the mean over labels would only make gradients smaller, down to
where Adam's epsilon counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from longtail.labels.frequency import log_odds
from longtail.nn.batch import Targets
from longtail.nn.heads.attention import Words
from longtail.nn.heads.base import Head, working_dtype
from longtail.options import Options
from longtail.types import LabelMatrix

_ALIGNED = 8
"""Chunks are filled up to a multiple of so many labels, which matrix products on a GPU like."""
_HELD = 16
"""Bytes that a weight of attention takes in a chunk, with logits and gradients."""


class LabelwiseOptions(Options):
    """Shape of label-wise attention."""

    widths: tuple[PositiveInt, ...] = Field((256,), min_length=1)
    """Units of the ReLU layers that all labels share."""
    own_output: bool = False
    """Add to the shared output one of the label's own, which starts at zero."""
    prior: bool = True
    """Give each label a bias, which starts as its log odds in training; the authors' network has none."""
    chunk: PositiveInt = 1 << 26
    """Weights of attention (texts × words × labels) that are held at once: bounds memory and changes nothing else."""


class Chunk(NamedTuple):
    """Some labels, filled up with places whose logit is −inf."""

    places: slice | Tensor
    """Which rows these are: neighbours, or (B, n) where each text has labels of its own."""
    rows: Tensor  # (c, d) or (B, c, d), c ≥ n, in the type of large products
    offset: Tensor  # (c,) or (B, c): bias, or −inf
    outputs: Tensor | None  # (c, f) or (B, c, f)
    hits: Tensor | None  # (B, c) float32: 1 where a text has the label

    @property
    def n(self) -> int:
        """Labels that it has not been filled up with."""
        return self.places.stop - self.places.start if isinstance(self.places, slice) else int(self.places.shape[1])

    def filled(self) -> Chunk:
        """With as many labels as products like."""
        more = -self.rows.shape[-2] % _ALIGNED
        rows, outputs = (None if part is None else F.pad(part, (0, 0, 0, more)) for part in (self.rows, self.outputs))
        offset = F.pad(self.offset, (0, more), value=-torch.inf)
        hits = None if self.hits is None else F.pad(self.hits, (0, more))
        return Chunk(self.places, cast(Tensor, rows), offset, outputs, hits)

    def put(self, gradient: Tensor, total: Tensor) -> None:
        """Add the gradient of these rows, (c, …) or (B, c, …), to that of all rows."""
        if isinstance(self.places, slice):
            total[self.places] += gradient[: self.n]
        else:
            total.index_add_(0, self.places.flatten(), gradient[:, : self.n].flatten(0, 1))


class Shared(nn.Module):
    """The layers that score what a label found; the first one's weights are applied to words, before attention."""

    def __init__(self, width: int, widths: Sequence[int]) -> None:
        super().__init__()
        self.first = nn.Linear(width, widths[0])
        self.inner = nn.ModuleList(nn.Linear(above, below) for above, below in pairwise(widths))
        self.last = nn.Linear(widths[-1], 1)

    def forward(self, found: Tensor, outputs: Tensor | None, kind: torch.dtype) -> Tensor:
        """Logits (B, c) float32 of what labels found (B, c, f); inner products are of `kind`."""
        state = (found + self.first.bias).relu()
        for layer in self.inner:
            weight, bias = cast(Tensor, layer.weight), cast(Tensor, layer.bias)
            state = (F.linear(state.to(kind), weight.to(kind)).float() + bias).relu()
        logits = F.linear(state, self.last.weight, self.last.bias).squeeze(2)
        return logits if outputs is None else logits + (state * outputs).sum(2)


class Labelwise(Head):
    """Every label with its own attention."""

    def __init__(
        self, width: int, n_labels: int, options: LabelwiseOptions | None = None, n_rows: int | None = None
    ) -> None:
        """Above states of `width` numbers; there are `n_rows` places where these are more than labels."""
        super().__init__()
        self.options, self.n_labels, n_rows = options or LabelwiseOptions(), n_labels, n_rows or n_labels
        widths = self.options.widths
        self.shared = Shared(width, widths)
        bound = (6 / (n_labels + width)) ** 0.5  # Xavier's: attention begins nearly even
        self.rows = nn.Parameter(torch.empty(n_rows, width).uniform_(-bound, bound))
        self.outputs = nn.Parameter(torch.zeros(n_rows, widths[-1])) if self.options.own_output else None
        self.bias = nn.Parameter(torch.zeros(n_rows)) if self.options.prior else None

    def begin(self, places: LabelMatrix) -> None:
        """See `Head.begin`."""
        self.begin_with(places.texts_per_label(), places.n_texts)

    def begin_with(self, counts: NDArray[np.int64], n_texts: int | NDArray[np.int64]) -> None:
        """Set the bias of each row by how many of `n_texts` texts have its label."""
        if self.bias is None:
            return
        with torch.no_grad():
            self.bias.copy_(torch.from_numpy(log_odds(counts, n_texts)))

    def loss(
        self, vectors: Tensor, targets: Targets, share: float = 1.0, show: bool = False, mask: Tensor | None = None
    ) -> Tensor:
        """See `Head.loss`; `vectors` are states (B, T, d), `mask` (B, T) is true where a word is real."""
        values = F.linear(vectors, self.shared.first.weight)
        words, n_step = self.words(vectors, values, mask), len(vectors) / share
        given = {"states": vectors, "values": values, **self._by_row(), **self._behind_attention()}
        learns, value = torch.is_grad_enabled(), torch.zeros((), device=vectors.device)
        with torch.no_grad(), torch.autocast(vectors.device.type, enabled=False):
            sums = {name: torch.zeros(part.shape, device=part.device) for name, part in given.items() if learns}
            for chunk in self.training_chunks(words, targets):
                logits = self._learn(words, chunk, sums) if learns else self.logits(words, chunk)
                value += F.softplus(torch.where(_hits(chunk) > 0, -logits, logits)).sum() / n_step
            gradients = [part.div_(n_step) for part in sums.values()]
        return given_gradients(value, list(given.values()), gradients) if learns else value

    def _learn(self, words: Words, chunk: Chunk, sums: Mapping[str, Tensor]) -> Tensor:
        """Add a chunk's gradients to those in `sums`; gives its logits (B, c)."""
        attention, found = words.attend(chunk.rows)
        leaves = {"found": found} if chunk.outputs is None else {"found": found, "outputs": chunk.outputs.detach()}
        for leaf in leaves.values():
            leaf.requires_grad_()
        leaves |= self._behind_attention()
        with torch.enable_grad():
            scores = self.shared(found, leaves.get("outputs"), words.states.dtype)
        logits: Tensor = scores.detach() + chunk.offset
        signal = logits.sigmoid() - _hits(chunk)
        made = dict(zip(leaves, torch.autograd.grad(scores, list(leaves.values()), signal), strict=True))
        back = words.gradients(chunk.rows, attention, found.detach(), made.pop("found"))
        made |= {"states": back.states, "values": back.values, "rows": back.rows}
        if self.bias is not None:
            made["bias"] = signal.sum(0) if isinstance(chunk.places, slice) else signal
        for name, gradient in made.items():
            if name in self._by_row():
                chunk.put(gradient, sums[name])
            else:
                sums[name].add_(gradient)
        return logits

    def top_k(self, vectors: Tensor, k: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """See `Head.top_k`; `vectors` and `mask` as for `loss`."""
        logs, places = self.ranked(vectors, k, mask)
        return logs.exp(), places

    @torch.no_grad()
    def ranked(self, vectors: Tensor, k: int, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Log scores and places of the k best labels, best first; equal ones by label."""
        words = self.words(vectors, F.linear(vectors.to(self.rows.dtype), self.shared.first.weight), mask)
        with torch.autocast(vectors.device.type, enabled=False):
            logits = torch.cat([self.logits(words, chunk)[:, : chunk.n] for chunk in self._neighbours(words)], 1)
        # Sorted, not just the best taken: labels may well be equal (those of a text of one word find the same).
        logs, places = F.logsigmoid(logits).sort(dim=1, descending=True, stable=True)
        return logs[:, :k], places[:, :k]

    def logits(self, words: Words, chunk: Chunk) -> Tensor:
        """Of a chunk, (B, c) float32."""
        scores = cast(Tensor, self.shared(words.attend(chunk.rows)[1], chunk.outputs, words.states.dtype))
        return scores + chunk.offset

    def words(self, vectors: Tensor, values: Tensor, mask: Tensor | None) -> Words:
        """What labels read, in the type of large products: that of autocast, else that of the weights."""
        kind = working_dtype(vectors) if torch.is_autocast_enabled(vectors.device.type) else self.rows.dtype
        return Words(vectors.detach().to(kind), values.detach().to(kind), mask)

    def labels_at_once(self, words: Words) -> int:
        """Labels of a chunk."""
        n_texts, n_words, _ = words.states.shape
        return max(1, self.options.chunk // max(1, n_texts * n_words * _ALIGNED)) * _ALIGNED

    def training_chunks(self, words: Words, targets: Targets) -> Iterator[Chunk]:
        """The labels that texts are trained on, and which of them they have."""
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
        """Parameters with a row a label."""
        found = {"rows": self.rows, "bias": self.bias, "outputs": self.outputs}
        return {name: part for name, part in found.items() if part is not None}

    def _behind_attention(self) -> dict[str, Tensor]:
        """What labels share, but for the weights that are applied to words."""
        return {name: part for name, part in self.shared.named_parameters() if name != "first.weight"}

    def group_of(self, name: str) -> str:
        """See `Head.group_of`: what labels share learns as a bottleneck does."""
        return "bottleneck" if name.startswith("shared.") else "head"

    def held_bytes(self, n_texts: int, n_tokens: int) -> int:
        """See `Head.held_bytes`: a chunk of attention, and states and values with their gradients."""
        width = self.rows.shape[1] + self.options.widths[0]
        n_weights = n_texts * n_tokens * len(self.rows)
        return _HELD * min(self.options.chunk, n_weights) + 3 * 4 * n_texts * n_tokens * width

    def facts(self) -> dict[str, Any]:
        """See `Head.facts`."""
        return {"n_labels": self.n_labels, "n_weights": sum(part.numel() for part in self._by_row().values())}


def given_gradients(value: Tensor, given: Sequence[Tensor], gradients: Sequence[Tensor]) -> Tensor:
    """`value` as a loss whose gradients by `given` are `gradients`, whatever the value says."""
    made: Tensor = _Given.apply(value, gradients, *given)  # type: ignore[no-untyped-call]
    return made


class _Given(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, gradients: Sequence[Tensor], *given: Tensor) -> Tensor:
        ctx.save_for_backward(*gradients)
        ctx.kinds = [part.dtype for part in given]
        return value.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:
        found = zip(ctx.saved_tensors, ctx.kinds, strict=True)
        return None, None, *((gradient * upper).to(kind) for gradient, kind in found)


def _hits(chunk: Chunk) -> Tensor:
    return cast(Tensor, chunk.hits)
