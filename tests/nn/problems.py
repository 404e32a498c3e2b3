"""Small label sets in clusters, and the shortlist head on them as plain dense layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Targets
from longtail.nn.heads.base import HeadInputs, Step, positions
from longtail.nn.heads.candidates import CandidateClusters
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions, cluster_targets
from longtail.nn.heads.table import LabelTableOptions
from longtail.types import LabelMatrix

WIDTH = 6
PLAIN = LabelTableOptions(optimizer="sgd", momentum=0.0, chunk=7)
STEP = Step({"head": 1.0})


def index_of(parent: Any) -> LabelIndex:
    parent = np.asarray(parent, np.int32)
    return LabelIndex((np.zeros(parent.max() + 1, np.int32), parent))


def a_deep_index(seed: int, n_labels: int = 13) -> LabelIndex:
    """Levels of uneven clusters, only children among them; no cluster is empty."""
    rng = np.random.default_rng(seed)
    sizes = sorted(rng.integers(1, n_labels + 1, rng.integers(0, 4)).tolist())
    parents = []
    for above, below in zip([1, *sizes], [*sizes, n_labels], strict=True):
        given_parents = np.append(np.arange(above), rng.integers(0, above, below - above))
        parents.append(np.sort(given_parents).astype(np.int32) if below != n_labels else rng.permutation(given_parents))
    return LabelIndex(tuple(np.asarray(parent, np.int32) for parent in parents))


def a_head(index: LabelIndex, seed: int = 0, table: LabelTableOptions = PLAIN, **options: Any) -> Shortlist:
    torch.manual_seed(seed)
    made = Shortlist(WIDTH, index, ShortlistOptions(bottleneck_width=4, **options), table)
    made.recall.bias.data.normal_()
    for value in made.rank.parameters():
        value.data.normal_()
    return made


@dataclass
class Problem:
    index: LabelIndex
    lists: list[list[int]]  # labels of each text
    vectors: Tensor

    @property
    def texts(self) -> int:
        return len(self.lists)

    @property
    def clusters(self) -> list[set[int]]:
        return [{int(self.index.parents[-1][label]) for label in row} for row in self.lists]

    def targets(self, head: Shortlist) -> Targets:
        matrix = LabelMatrix.from_lists(self.lists, self.index.n_labels)
        places = matrix.renumber(positions(head.order, head.n_labels), len(head.order))
        return Targets.of(places, np.arange(self.texts))

    def dense(self) -> Tensor:
        made = torch.zeros(self.texts, self.index.n_labels)
        for text, row in enumerate(self.lists):
            made[text, row] = 1
        return made


def a_problem(seed: int, n_labels: int = 17, n_clusters: int = 5, n_texts: int = 6, most: int = 6) -> Problem:
    """Clusters of uneven sizes; the last text has no label, the one before it has one in each cluster."""
    rng = np.random.default_rng(seed)
    parent = np.append(np.arange(n_clusters), rng.integers(0, n_clusters, n_labels - n_clusters))
    rng.shuffle(parent)
    lists = [sorted(rng.choice(n_labels, rng.integers(1, most + 1), replace=False).tolist()) for _ in range(n_texts)]
    lists[-1] = []
    if n_texts > 1:
        lists[-2] = sorted(int(np.flatnonzero(parent == cluster)[0]) for cluster in range(n_clusters))
    vectors = torch.from_numpy(rng.standard_normal((n_texts, WIDTH)).astype(np.float32))
    return Problem(index_of(parent), lists, vectors)


def chosen_by(head: Shortlist, problem: Problem) -> tuple[CandidateClusters, list[set[int]]]:
    positives = cluster_targets(problem.targets(head), head.size, torch.device("cpu"))
    chosen = head.choose(problem.vectors, positives)
    allowed = chosen.allowed(head.n_clusters)
    return chosen, [set(np.flatnonzero(row).tolist()) for row in allowed.numpy()]


@dataclass
class Reference:
    """The head as dense layers over labels (not places), trained by autograd."""

    vectors: Tensor
    recall: Tensor
    bias: Tensor
    narrow: Tensor
    narrow_bias: Tensor
    labels: Tensor
    label_bias: Tensor
    index: LabelIndex
    sigmoid: bool = False

    @classmethod
    def of(cls, head: Shortlist, problem: Problem) -> Reference:
        place = positions(head.order, head.n_labels)
        copies = [problem.vectors, head.recall.weight, head.recall.bias, head.bottleneck.weight, head.bottleneck.bias]
        copies += [head.rank.weight[place], head.rank.bias[place]]
        leaves = [tensor.detach().clone().requires_grad_() for tensor in copies]
        return cls(*leaves, problem.index, head.options.bottleneck == "sigmoid")

    def logits(self) -> tuple[Tensor, Tensor]:
        inner = F.linear(self.vectors, self.narrow, self.narrow_bias)
        inner = inner.sigmoid() if self.sigmoid else inner
        return F.linear(self.vectors, self.recall, self.bias), inner @ self.labels.T + self.label_bias

    def losses(self, problem: Problem, chosen: list[set[int]]) -> tuple[Tensor, Tensor, Tensor]:
        """Of each text: the sum over clusters, the sum over candidates, the number of candidates."""
        recall, rank = self.logits()
        hits = torch.zeros(problem.texts, problem.index.n_clusters)
        counted = torch.zeros(problem.texts, problem.index.n_labels)
        for text in range(problem.texts):
            hits[text, sorted(problem.clusters[text])] = 1
            counted[text] = torch.from_numpy(np.isin(problem.index.parents[-1], sorted(chosen[text])))
        by_cluster = F.binary_cross_entropy_with_logits(recall, hits, reduction="none").sum(1)
        by_label = F.binary_cross_entropy_with_logits(rank, problem.dense(), reduction="none") * counted
        return by_cluster, by_label.sum(1), counted.sum(1)

    def scores(self) -> Tensor:
        recall, rank = self.logits()
        return rank.sigmoid() * recall.sigmoid()[:, self.index.parents[-1].astype(np.int64)]


def trained(head: Shortlist, problem: Problem) -> dict[str, Tensor]:
    """Loss, gradients and the change of the tables after one step of plain gradient descent."""
    vectors = problem.vectors.clone().requires_grad_()
    before = {name: value.clone() for name, value in head.bulk.items()}
    loss = head.loss(HeadInputs(vectors), problem.targets(head), show=True)
    loss.backward()
    head.step(STEP)
    found = {name: before[name] - value for name, value in head.bulk.items()}
    found |= {name: value.grad for name, value in head.bottleneck.named_parameters() if value.grad is not None}
    return {"loss": loss.detach(), "vectors": vectors.grad, **found}


def close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-5, rtol=1e-5)
