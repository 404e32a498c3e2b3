"""A probabilistic label tree: P(label) is the product over its path of P(node | parent) (XT, PLT).

    vectors (B, d)  ->  logits of nodes  ->  log P(label) = sum of log σ(logit) from the root's child down to the label

A node is trained on the texts that have a label below its parent, the root's children on all texts, each by binary
cross-entropy: a text with few labels touches few nodes, however many there are, and only these are read and updated
(`rows`).

Search goes down level by level and keeps the best nodes of each, a beam. A node that is cut off holds no label more
likely than itself. So a list is exact where its last label is at least as likely as the best node that was cut; texts
of which that is not true are searched again with a wider beam, until it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from pydantic import PositiveInt
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.labels.nodes import Nodes
from longtail.nn.batch import Targets, on_device
from longtail.nn.heads.base import HEADS, Head, HeadInputs, Step, as_scores, best_first, with_gradients
from longtail.nn.rows import RowTable, Touches
from longtail.options import Ablation, Options
from longtail.types import LabelMatrix

_WIDEN = 4
_LABELS = 8
"""Labels per text, for estimating memory."""


class TreeHeadOptions(Options):
    """Initial weights and search of a label tree."""

    prior: Ablation[bool] = True
    """Start biases from how often each node is right where its parent is."""
    beam: PositiveInt = 10
    """Clusters per level in the first search."""
    exact: bool = True
    """Search with wider beams until the list is certain to be the best; otherwise the first list is kept."""


@HEADS.register("tree")
class Tree(Head):
    """One row of weights per node."""

    built_from = "index"
    options_class = TreeHeadOptions
    numbers_at_once = 1 << 22
    """Weights that are gathered at once."""

    offsets: Tensor
    """(n + 1,) Added to logits: inf for an only child, whose probability is 1; −inf for padding."""

    def __init__(self, width: int, index: LabelIndex, options: TreeHeadOptions | None = None) -> None:
        super().__init__()
        self.options, self.tree, self.n_labels = options or TreeHeadOptions(), Nodes(index), index.n_labels
        self.nodes = RowTable(self.tree.n + 1, width + 1)  # a row ends with its bias; the last row is padding
        for number, level in enumerate(self.tree.children_by_level()):
            self.register_buffer(f"level_{number}", torch.from_numpy(level), persistent=False)
        offsets = np.append(np.where(self.tree.only, np.inf, 0), -np.inf).astype(np.float32)
        self.register_buffer("offsets", torch.from_numpy(offsets), persistent=False)

    def init_from_labels(self, places: LabelMatrix) -> None:
        """Start biases from how often each node is right where its parent is."""
        if self.options.prior:
            self.nodes.weight.data[: self.tree.n, -1] = torch.from_numpy(self.tree.odds(places))

    def loss(self, inputs: HeadInputs, targets: Targets, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the mean over texts of the sum over the nodes that a text is trained on."""
        vectors = inputs.vectors
        pairs, device = self.tree.pairs(targets.host_rows, targets.host_labels, targets.n_texts), vectors.device
        starts = on_device(np.searchsorted(pairs.texts, np.arange(len(vectors))), device)
        texts, nodes = on_device(pairs.texts, device), on_device(pairs.nodes, device)
        right, widened = on_device(pairs.right, device).float(), _with_one(vectors.detach())
        logits = self._logits(widened, texts, nodes)
        each = F.binary_cross_entropy_with_logits(logits, right, reduction="sum") if show else logits.new_zeros(())
        signal = (logits.sigmoid() - right) * (share / len(vectors))
        gradient = F.embedding_bag(nodes, self.nodes.weight, starts, mode="sum", per_sample_weights=signal)
        if torch.is_grad_enabled():
            self.nodes.works.append(Touches(nodes, texts, widened, signal))
        return with_gradients(each * (share / len(vectors)), [vectors], [gradient[:, :-1]])

    def step(self, step: Step) -> None:
        """Update the rows of the nodes that texts touched since the last step."""
        self.nodes.update(step.rates["head"], step.decay)

    def forget(self) -> None:
        """Drop what `loss` was given since the last step."""
        self.nodes.works = []

    @torch.no_grad()
    def top_k(self, inputs: HeadInputs, k: int) -> tuple[Tensor, Tensor]:
        """Return the best labels, exactly unless `options.exact` is off; ties by label."""
        widened, beam = _with_one(inputs.vectors), self.options.beam
        scores, labels, sure = self._search(widened, k, beam)
        while self.options.exact and not sure.all():
            beam *= _WIDEN
            left = (~sure).nonzero()[:, 0]
            scores[left], labels[left], sure[left] = self._search(widened[left], k, beam)
        return as_scores(scores, labels), labels

    def tables(self) -> dict[str, RowTable]:
        """Return the tables that train themselves, by attribute."""
        return {"nodes": self.nodes}

    def held_bytes(self, n_texts: int, n_tokens: int) -> int:
        """Return the bytes of a step: the rows of the nodes that texts touch, and the vectors of the texts."""
        pairs = _LABELS * sum(level.shape[1] for level in self._levels())
        return 2 * 4 * min(self.numbers_at_once, n_texts * pairs * self.nodes.embedding_dim)

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the head."""
        n_weights = self.tree.n * self.nodes.embedding_dim
        counts = {"n_labels": self.n_labels, "n_nodes": self.tree.n, "n_levels": self.tree.depth}
        return {**counts, "n_weights": n_weights}

    def _levels(self) -> list[Tensor]:
        return [self.get_buffer(f"level_{number}") for number in range(self.tree.depth)]

    def _logits(self, inputs: Tensor, texts: Tensor, nodes: Tensor) -> Tensor:
        """Return the logits of pairs of a text and a node, (n,)."""
        step = max(1, self.numbers_at_once // inputs.shape[1])
        pairs = zip(nodes.split(step), texts.split(step), strict=True)
        return torch.cat([(self.nodes.weight[node] * inputs[text]).sum(1) for node, text in pairs])

    def _search(self, inputs: Tensor, k: int, beam: int) -> tuple[Tensor, Tensor, Tensor]:
        """Return log scores and labels (B, k), best first, and whether they are sure to be the best (B,)."""
        widest = max(min(beam, len(level)) * level.shape[1] for level in self._levels())
        step = max(1, self.numbers_at_once // (widest * inputs.shape[1]))
        lists = [self._search_some(some, k, beam) for some in inputs.split(step)]
        scores, labels, sure = (torch.cat(column) for column in zip(*lists, strict=True))
        return scores, labels, sure

    def _search_some(self, inputs: Tensor, k: int, beam: int) -> tuple[Tensor, Tensor, Tensor]:
        nodes, above = self._levels()[0].expand(len(inputs), -1), inputs.new_zeros(len(inputs), 1)
        scores, cut = self._scores(inputs, nodes, above), inputs.new_full((len(inputs),), -torch.inf)
        for level, start in zip(self._levels()[1:], self.tree.starts.tolist(), strict=False):
            kept = min(beam, scores.shape[1])
            best, at = scores.topk(min(kept + 1, scores.shape[1]))
            if best.shape[1] > kept:
                cut = torch.maximum(cut, best[:, kept])
            above = best[:, :kept]
            clusters = nodes.gather(1, at[:, :kept]) - start
            nodes = level[clusters.where(above > -torch.inf, 0)].flatten(1)  # below padding all stays at −inf
            scores = self._scores(inputs, nodes, above)
        best, at = scores.topk(min(k, scores.shape[1]))
        best, labels = best_first(best, nodes.gather(1, at) - (self.tree.n - self.n_labels), k)
        return best, labels, best[:, -1] >= cut

    def _scores(self, inputs: Tensor, nodes: Tensor, above: Tensor) -> Tensor:
        """Return log scores of nodes (B, b·s) below clusters with log scores `above` (B, b)."""
        logits = (self.nodes.weight[nodes] @ inputs[:, :, None]).squeeze(2) + self.offsets[nodes]
        return F.logsigmoid(logits) + above.repeat_interleave(nodes.shape[1] // above.shape[1], 1)


def _with_one(vectors: Tensor) -> Tensor:
    """Return vectors with a 1 appended (B, d + 1) float32, which the bias is multiplied with."""
    return F.pad(vectors.float(), (0, 1), value=1.0)
