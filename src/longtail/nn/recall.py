"""Label clusters of a text by a neural matcher: an encoder and one row of weights a cluster (X-BERT's second stage).

texts  ->  clusters (n, b), log scores (n, b)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.linear.recall import LinearRecall, LinearRecallOptions
from longtail.machine import Needs
from longtail.nn.encoders.base import EncoderOptions
from longtail.nn.encoders.choice import AnyEncoderOptions
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import Loss, TableOptions
from longtail.nn.needs import Advice, neural_needs, text_width
from longtail.nn.tagger import MakeHead, Tagger
from longtail.nn.training import TrainingOptions
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.joined import with_embeddings
from longtail.types import LabelMatrix

_LOWEST = np.float32(1e-30)
_ADVICE = Advice("recalls.*", "matcher.clusters.storage or matcher.clusters.optimizer", "matcher.training")


class NeuralRecallOptions(Options):
    """The head and the training of a neural matcher."""

    loss: Loss = "squared_hinge"
    """Squared hinge with margin 1 (X-BERT), binary cross-entropy, or a softmax over the clusters."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the text vector."""
    max_targets: int | None = Field(None, ge=1)
    """Clusters of a text that are learned from, the first ones; X-BERT's code cuts at 32. By default all."""
    clusters: TableOptions = TableOptions()
    """How the clusters' weights are kept and trained."""
    training: TrainingOptions = TrainingOptions()
    """How the network is trained."""


class NeuralRecall:
    """A trained matcher."""

    def __init__(self, tagger: Tagger) -> None:
        self.tagger = tagger

    @classmethod
    def fit(
        cls,
        encoder: EncoderOptions,
        options: NeuralRecallOptions,
        texts: pa.Table,
        features: Rows,
        labels: LabelMatrix,
        index: LabelIndex,
        seed: int,
        run: Run,
    ) -> NeuralRecall:
        """Train on the clusters of each text's labels, each counted once."""
        targets = labels.renumber(index.parents[-1], index.n_clusters)
        if options.max_targets is not None:
            targets = _first(targets, options.max_targets)
        made = make_head(options, index.n_clusters)
        return cls(Tagger.fit(texts, targets, encoder, made, options.training, options.dropout, seed, run))

    def clusters(
        self, texts: pa.Table, features: Rows, b: int, run: Run
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The b best clusters of each text with their log scores."""
        found = self.tagger.top_k(texts, b, run)
        real = found.labels >= 0
        logs = np.log(np.maximum(np.where(real, found.scores, 1), _LOWEST), dtype=np.float32)
        return found.labels, np.minimum(logs, 0)

    def joined(self, texts: pa.Table, features: Rows, weight: float, run: Run) -> Rows:
        """Features of texts with their vectors beside."""
        return with_embeddings(features, self.tagger.vectors(texts, run), weight) if weight else features

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.tagger.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str, options: NeuralRecallOptions, n_clusters: int) -> NeuralRecall:
        """Open what `save` wrote."""
        return cls(Tagger.load(folder, name, make_head(options, n_clusters)))

    def facts(self) -> dict[str, Any]:
        """What people want to know of the network."""
        return self.tagger.describe()


AnyRecallOptions: TypeAlias = Annotated[AnyEncoderOptions | LinearRecallOptions, Field(discriminator="kind")]


def is_neural(options: Options) -> bool:
    """Whether these are options of a neural matcher: of its encoder."""
    return isinstance(options, EncoderOptions)


def recall_of(options: Options) -> Any:
    """The class of a matcher."""
    return NeuralRecall if is_neural(options) else LinearRecall


def make_head(options: NeuralRecallOptions, n_clusters: int) -> MakeHead:
    """The head over clusters."""
    return lambda width: Dense(width, n_clusters, options.clusters, options.loss)


def recall_needs(
    split: Split,
    recalls: Sequence[Any],
    options: NeuralRecallOptions,
    tree: TreeOptions,
    n_times: int,
    measure: bool = False,
    threads: int | None = None,
) -> tuple[Needs, int]:
    """What training the neural matchers `n_times` will take, none for others; and the width of their text vectors."""
    encoders = [recall for recall in recalls if is_neural(recall)]
    if not encoders:
        return Needs(0, 0, ""), 0
    head = make_head(options, even_index(split.labels.n_seen(), tree).n_clusters)
    how: dict[str, Any] = {"n_seeds": n_times, "n_readings": 2.0, "measure": measure, "threads": threads}
    needs = neural_needs(split, encoders, head, options.training, advice=_ADVICE, **how)
    return needs, text_width(split, encoders)


def _first(targets: LabelMatrix, most: int) -> LabelMatrix:
    """At most so many targets a text."""
    place = np.arange(len(targets.indices)) - np.repeat(targets.indptr[:-1], targets.labels_per_text())
    texts = np.repeat(np.arange(targets.n_texts), targets.labels_per_text())
    kept = place < most
    return LabelMatrix.from_pairs(texts[kept], targets.indices[kept], targets.n_texts, targets.n_labels)
