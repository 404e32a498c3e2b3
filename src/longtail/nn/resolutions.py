"""Fine-tune one encoder on label clusters, coarse to fine: XR-Transformer's multi-resolution training.

    1st level   the encoder and a row per cluster: every cluster is scored
    recalled    (n_texts, n) the clusters that it now finds most likely, and the text vectors; one pass over the texts
    2nd level   the same encoder goes on with a row per child of these clusters; a text counts for the children of its
                recalled clusters and of the clusters of its own labels
    …           down to the labels, or to the last level that has not too many clusters

The rows of a level begin where a linear solver puts them on the text vectors of the level above (`linear`), or as the
rows of their parents (`inherit`). What is wanted in the end is the encoder: heads serve to train it, and are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import islice
from typing import Any, Literal, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field, PositiveInt
from torch import Tensor

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.recall import Recalled
from longtail.linear.training import Examples, SolverOptions, fit_layer
from longtail.nn.encoders.base import EncoderOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense_candidates import DenseCandidates
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.resources import Advice, EstimateKeywords, estimate_network
from longtail.nn.tagger import NetworkPlan, Tagger, split_rows
from longtail.nn.training.options import TrainingOptions
from longtail.options import Ablation, Options
from longtail.run.resources import ResourceEstimate
from longtail.run.run import Run
from longtail.sparse import sp
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

_ADVICE = Advice(
    labels="fine_tuning.clusters.storage or fine_tuning.clusters.optimizer", training="fine_tuning.training.*"
)
_COARSE = TrainingOptions(epochs=2.0, batch_size=32, rate=1e-4, head_rate=2e-3)


class FineTuningOptions(Options):
    """How an encoder is trained on the levels of a label tree."""

    max_clusters: PositiveInt = 32_768
    """Levels with more clusters are left out, the labels too where there are more."""
    n_candidates: PositiveInt = 20
    """Clusters of the level above whose children a text counts for, those of its own labels beside."""
    bootstrap: Literal["linear", "inherit", "random"] = "linear"
    """Where the rows of a level begin: at the classifiers that a linear solver finds on the text vectors of the level
    above, at the row of the parent, or at random (as those of the first level do)."""
    solver: SolverOptions = SolverOptions(threshold=0.0)
    """The solver of `linear`; text vectors have unit length on average."""
    loss: Ablation[Literal["squared_hinge", "bce"]] = "squared_hinge"
    """Squared hinge with margin 1, or binary cross-entropy."""
    weighting: Ablation[Literal["equal", "by_label_count"]] = "by_label_count"
    """How much a cluster of a text counts in the loss: 1, or as many labels as the text has in it."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the text vector."""
    clusters: LabelTableOptions = LabelTableOptions()
    """How the clusters' weights are kept and trained."""
    training: tuple[TrainingOptions, ...] = Field(
        (_COARSE, _COARSE, _COARSE.model_copy(update={"epochs": 4.0})), min_length=1
    )
    """How each level is trained, the coarsest first; the last one stands for all levels below."""


@dataclass(frozen=True, eq=False)
class LevelTask:
    """What is to be learned at one level."""

    index: LabelIndex
    """The clusters of the level as labels, below those of the level above."""
    targets: LabelMatrix  # (n_texts, n_clusters)
    counts: NDArray[np.int64] | None = None  # (n_assignments,) how often each target counts; None: once

    def take(self, rows: NDArray[np.int64]) -> LevelTask:
        """Return the same for some of the texts."""
        counts = None if self.counts is None else self.label_counts()[rows].data.astype(np.int64)
        return LevelTask(self.index, self.targets.take(rows), counts)

    def label_counts(self) -> sp.csr_matrix:
        """Return how often each target counts, (n_texts, n_clusters)."""
        targets, shape = self.targets, (self.targets.n_texts, self.targets.n_labels)
        return sp.csr_matrix((np.asarray(self.counts, np.float32), targets.indices, targets.indptr), shape=shape)


@dataclass(frozen=True, eq=False)
class Resolutions:
    """The levels that an encoder is trained on."""

    index: LabelIndex
    """The label tree; each of its levels with few enough clusters is trained on, the labels counted in."""
    options: FineTuningOptions

    @property
    def n_levels(self) -> int:
        """Levels that are trained one after the other."""
        return max(1, sum(len(level) <= self.options.max_clusters for level in self.index.parents))

    def fit(self, texts: TextReadings, labels: LabelMatrix, encoder: EncoderOptions, *, seed: int, run: Run) -> Tagger:
        """Train on texts and their labels, level by level; return the encoder as the last level left it."""
        tagger: Tagger | None = None
        recalled: Recalled | None = None
        facts: list[dict[str, Any]] = []
        for level in range(self.n_levels):
            within = run.within(f"level-{level}")
            task = self.task(level, labels)
            plan = NetworkPlan(encoder, self._training(level), self.options.dropout, seed)
            tagger = self.fit_level(task, texts, plan, above=tagger, recalled=recalled, run=within)
            facts.append({"n_clusters": task.targets.n_labels, **tagger.facts})
            if level + 1 < self.n_levels:
                recalled = self.read_level(tagger, texts, within=recalled, run=within)
        if tagger is None:
            raise ValueError("an index must have a level")
        return replace(tagger.without_head(), facts={"levels": facts})

    def task(self, level: int, labels: LabelMatrix) -> LevelTask:
        """Return what is to be learned at a level from the labels of the texts."""
        targets = next(islice(self.index.targets(labels), level, None))
        is_last = level == len(self.index.parents) - 1
        counts = None if self.options.weighting == "equal" or is_last else self.index.counts(labels, level)
        return LevelTask(self._step_to(level), targets, counts)

    def fit_level(
        self,
        task: LevelTask,
        texts: TextReadings,
        plan: NetworkPlan,
        *,
        above: Tagger | None,
        recalled: Recalled | None,
        run: Run,
    ) -> Tagger:
        """Train the encoder of the level `above` on one level, within the clusters that were `recalled` there."""
        kept, _ = split_rows(len(texts), plan.training, plan.seed)  # the trainer numbers these
        training_task = task.take(kept)

        def make_head(width: int) -> Head:
            head = self.head(task.index, width)
            if training_task.counts is not None:
                head.weigh(training_task.label_counts())
            if above is not None and recalled is not None:
                self._bootstrap(head, training_task, above, recalled.take(kept), seed=plan.seed, run=run)
            return head

        return Tagger.fit(texts, task.targets, plan, make_head, run=run, start=above, recalled=recalled)

    def read_level(self, tagger: Tagger, texts: TextReadings, *, within: Recalled | None, run: Run) -> Recalled:
        """Return the clusters that a trained level finds `within` those of the level above, and the text vectors."""
        n = min(self.options.n_candidates, tagger.network.head.n_labels)

        def read() -> Mapping[str, NDArray[Any]]:
            best, vectors = tagger.top_k_and_vectors(texts, n, run, recalled=within)
            recalled = Recalled.of(best, vectors)
            return {"clusters": recalled.clusters, "log_scores": recalled.log_scores, "vectors": vectors}

        return Recalled(**run.stages.arrays("recalled", read)[0])

    def head(self, index: LabelIndex, width: int) -> DenseCandidates:
        """Return a head over the last level of `index`, for text vectors of `width` numbers."""
        return DenseCandidates(width, index, self.options.clusters, self.options.loss)

    def estimate_resources(
        self,
        split: Split,
        encoders: tuple[EncoderOptions, ...],
        **keywords: Unpack[EstimateKeywords],
    ) -> ResourceEstimate:
        """Return what it takes to train all levels with each encoder."""
        estimates = (
            estimate_network(
                split,
                encoders,
                partial(self.head, self._step_to(level)),
                self._training(level),
                n_readings=1.0,
                advice=_ADVICE,
                **keywords,
            )
            for level in range(self.n_levels)
        )
        return reduce(ResourceEstimate.then, estimates)

    def _training(self, level: int) -> TrainingOptions:
        return self.options.training[min(level, len(self.options.training) - 1)]

    def _step_to(self, level: int) -> LabelIndex:
        """Return the clusters of a level below those of the level above; all are below one where it is the first."""
        n_above = len(self.index.parents[level - 1]) if level else 1
        return LabelIndex((np.zeros(n_above, np.int32), self.index.parents[level]))

    def _bootstrap(
        self, head: DenseCandidates, task: LevelTask, above: Tagger, recalled: Recalled, *, seed: int, run: Run
    ) -> None:
        """Put the rows of a new head where training should begin."""
        if self.options.bootstrap == "inherit":
            table, parents = above.network.head.tables()["table"], torch.from_numpy(task.index.parents[-1]).long()
            weight, bias = (part.detach().float().cpu()[parents] for part in table.parameters())
            head.start(weight, bias)
        elif self.options.bootstrap == "linear":
            weight, bias = linear_start(task, recalled, self.options.solver, seed=seed, run=run)
            head.start(weight, bias)


def linear_start(
    task: LevelTask, recalled: Recalled, solver: SolverOptions, *, seed: int = 0, run: Run | None = None
) -> tuple[Tensor, Tensor]:
    """Return weights (n_clusters, d) and biases (n_clusters,) that a linear solver finds for the recalled vectors.

    Each cluster learns from the texts of its parent and from those that were recalled to it.
    """
    if recalled.vectors is None:
        raise ValueError("a linear start needs text vectors, got none")
    vectors = np.asarray(recalled.vectors)
    scale = float(np.sqrt(np.einsum("ij,ij->", vectors, vectors, dtype=np.float64) / len(vectors))) or 1.0
    level = task.index.levels()[-1]
    examples = Examples.of(task.targets, level, recalled=np.ascontiguousarray(recalled.clusters), counts=task.counts)
    layer = fit_layer(_rows(vectors / scale), level, examples, solver, seed=seed, run=run, name="first weights")
    weight = layer.matrix(vectors.shape[1]).toarray() / np.float32(scale)
    return torch.from_numpy(weight), torch.from_numpy(layer.biases())


def _rows(vectors: NDArray[np.float32]) -> Rows:
    """Return dense vectors as rows of the linear solver."""
    n, width = vectors.shape
    indices = np.tile(np.arange(width, dtype=np.int32), n)
    return Rows(np.arange(n + 1, dtype=np.int64) * width, indices, vectors.astype(np.float32).ravel(), width)
