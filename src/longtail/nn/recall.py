"""Recall label clusters with a network: an encoder and one row of weights per cluster (X-BERT's second stage).

texts (n)  ->  clusters (n, b), log scores (n, b), text vectors (n, width)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import numpy as np
from pydantic import AfterValidator, Field

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.recall import Recall, Recalled
from longtail.labels.tree import TreeOptions, even_index
from longtail.linear.recall import LinearRecall, LinearRecallOptions
from longtail.nn.encoders.base import ENCODERS, EncoderOptions, gives_vectors
from longtail.nn.heads.chunk_loss import Loss
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.resources import Advice, estimate_network, text_width
from longtail.nn.tagger import MakeHead, NetworkPlan, Tagger
from longtail.nn.training.options import TrainingOptions
from longtail.options import ByKind, Options
from longtail.persist import Folder, FolderWriter
from longtail.run.resources import ResourceEstimate
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

_ADVICE = Advice("recalls.*", "matcher.clusters.storage or matcher.clusters.optimizer", "matcher.training")


class NeuralRecallOptions(Options):
    """Head and training of a neural matcher."""

    loss: Loss = "squared_hinge"
    """Squared hinge with margin 1 (X-BERT), binary cross-entropy, or a softmax over the clusters."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the text vector."""
    max_targets: int | None = Field(None, ge=1)
    """Train only on the first clusters of a text, at most this many; X-BERT's code keeps 32. By default all."""
    clusters: LabelTableOptions = LabelTableOptions()
    """How the weights of clusters are stored and trained."""
    training: TrainingOptions = TrainingOptions()
    """How the network is trained."""


class NeuralRecall:
    """A trained matcher: a network whose labels are the clusters."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger

    @classmethod
    def fit(
        cls,
        texts: TextReadings,
        labels: LabelMatrix,
        index: LabelIndex,
        encoder: EncoderOptions,
        options: NeuralRecallOptions,
        *,
        seed: int,
        run: Run,
    ) -> NeuralRecall:
        """Train on the clusters of each text's labels, each counted once."""
        targets = labels.renumber(index.parents[-1], index.n_clusters)
        if options.max_targets is not None:
            targets = _first(targets, options.max_targets)
        plan = NetworkPlan(encoder, options.training, options.dropout, seed)
        return cls(Tagger.fit(texts, targets, plan, make_head(options, index.n_clusters), run=run))

    def read(self, texts: TextReadings, features: Rows, n: int, run: Run, *, vectors: bool = True) -> Recalled:
        """Return the n best clusters and the vector of each text, encoded once; `features` are not used."""
        if not vectors:
            return Recalled.of(self.tagger.top_k(texts, n, run))
        best, text_vectors = self.tagger.top_k_and_vectors(texts, n, run)
        return Recalled.of(best, text_vectors)

    @property
    def width(self) -> int:
        """Numbers of a text vector."""
        return self.tagger.network.encoder.width

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.tagger.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str, options: NeuralRecallOptions, n_clusters: int) -> NeuralRecall:
        """Open what `save` wrote."""
        return cls(Tagger.load(folder, name, make_head(options, n_clusters)))

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of the network."""
        return self.tagger.describe()


def _gives_vectors(options: Options) -> Options:
    return gives_vectors(options) if isinstance(options, EncoderOptions) else options


AnyRecallOptions: TypeAlias = Annotated[
    EncoderOptions | LinearRecallOptions, ByKind(ENCODERS, linear=LinearRecallOptions), AfterValidator(_gives_vectors)
]
"""Options of the encoder that their `kind` names, or of the linear matcher."""


@dataclass(frozen=True)
class Matcher:
    """Which recall to train, and how: linear, or neural with this encoder."""

    recall: AnyRecallOptions
    neural: NeuralRecallOptions
    """Head and training of a neural one."""

    def fit(
        self, texts: TextReadings, features: Rows, labels: LabelMatrix, index: LabelIndex, *, seed: int, run: Run
    ) -> Recall:
        """Train on the clusters of each text's labels; `features` are the TF-IDF rows of the texts."""
        if isinstance(self.recall, LinearRecallOptions):
            return LinearRecall.fit(features, labels, index, self.recall, seed=seed, run=run)
        return NeuralRecall.fit(texts, labels, index, self.recall, self.neural, seed=seed, run=run)

    def load(self, folder: Folder, name: str, *, n_columns: int, n_clusters: int) -> Recall:
        """Open what `save` of the recall wrote; `n_columns` are those of the TF-IDF rows."""
        if isinstance(self.recall, LinearRecallOptions):
            return LinearRecall.load(folder, name, n_columns=n_columns, n_clusters=n_clusters)
        return NeuralRecall.load(folder, name, self.neural, n_clusters)


def make_head(options: NeuralRecallOptions, n_clusters: int) -> MakeHead:
    """Return what makes the head over the clusters."""
    return lambda width: Dense(width, n_clusters, options.clusters, options.loss)


def estimate_recall(
    split: Split,
    recalls: Sequence[AnyRecallOptions],
    options: NeuralRecallOptions,
    tree: TreeOptions,
    *,
    n_times: int,
    measure: bool = False,
    threads: int | None = None,
) -> tuple[ResourceEstimate, int]:
    """Return what it takes to train each neural matcher `n_times`, and the width of their text vectors."""
    encoders = [recall for recall in recalls if isinstance(recall, EncoderOptions)]
    if not encoders:
        return ResourceEstimate(0, 0, ""), 0
    estimate = estimate_network(
        split,
        encoders,
        make_head(options, even_index(split.labels.n_seen(), tree).n_clusters),
        options.training,
        n_seeds=n_times,
        n_readings=1.0,
        advice=_ADVICE,
        measure=measure,
        threads=threads,
    )
    return estimate, text_width(split, encoders)


def _first(targets: LabelMatrix, most: int) -> LabelMatrix:
    """Return the first targets of each text, at most `most`."""
    places = np.arange(len(targets.indices)) - np.repeat(targets.indptr[:-1], targets.labels_per_text())
    texts = np.repeat(np.arange(targets.n_texts), targets.labels_per_text())
    kept = places < most
    return LabelMatrix.from_pairs(texts[kept], targets.indices[kept], targets.n_texts, targets.n_labels)
