"""Recall and rank with linear classifiers: walk down the label index with a beam, rank the labels reached.

    text features (n, n_features)  ->  TopK (n, k)

Inner levels are the matcher: its last keeps the `beam` best clusters of a text, those above `upper_beam`. The last
level is the ranker (`linear.ranker`): its classifiers score the labels of those clusters. A label's score is the
ranker's log score plus `cluster_weight` times the matcher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, takewhile
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.kernels.rows import Rows, SharedRows
from longtail.labels.clusters import ClusterShares
from longtail.labels.index import LabelIndex
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, fit_ranker
from longtail.linear.spans import BATCH, map_spans, rank_spans
from longtail.linear.training import STAGE_WORK, Examples, SolverOptions, fit_layer
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.joined import with_embeddings
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix, TopK


class BeamOptions(Options):
    """How labels are searched."""

    beam: PositiveInt = 50
    """Clusters kept of the last level, whose labels are ranked."""
    upper_beam: PositiveInt = 20
    """Clusters kept of each level above."""
    deep_beam: PositiveInt | None = None
    """The same where there are three levels of clusters or more: a text must not be lost at any of them."""
    cluster_weight: float = Field(0.4, ge=0)
    """How much the matcher's log score counts beside the ranker's."""
    cluster_power: int = Field(3, ge=0, le=8)
    """p in the matcher's score exp(−max(0, 1 − margin)^p); 0 for the sigmoid of the margin."""
    label_power: int = Field(4, ge=0, le=8)
    """The same for the ranker's score."""


@dataclass(frozen=True, eq=False)
class LinearTree:
    """A chain of layers from the root to the labels."""

    layers: tuple[Layer, ...]

    @property
    def n_labels(self) -> int:
        """Labels at the bottom."""
        return len(self.layers[-1].children)

    def predict(self, texts: Rows, k: int, search: BeamOptions, run: Run | None = None, *, most: int = BATCH) -> TopK:
        """Return the k best labels of each text, with scores in 0..1; at most `most` texts are ranked at once."""
        run = run or Run()
        matcher = self.layers[:-1]
        beams = _beams(matcher, search, min(search.beam, len(matcher[-1].children)) if matcher else 1)
        spec = WalkSpec.of(self.layers, texts, beams, search, run)
        work = partial(_predict_span, spec, k)
        widest = _widest(self.layers, beams) if len(texts) > 1 else 1  # a text alone is one span, however wide
        return rank_spans(work, len(texts), k, widest=widest, run=run, most=most)

    @property
    def index(self) -> LabelIndex:
        """The clusters of the labels."""
        parents = []
        for layer in self.layers:
            above = np.empty(len(layer.children), np.int32)
            above[layer.children] = np.repeat(np.arange(layer.n_clusters), np.diff(layer.child_ptr))
            parents.append(above)
        return LabelIndex(tuple(parents))

    @property
    def n_weights(self) -> int:
        """Weights of all layers."""
        return sum(layer.n_weights for layer in self.layers)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder, one file per layer."""
        for number, layer in enumerate(self.layers):
            writer.arrays(f"{name}-level-{number}", layer.arrays())

    @classmethod
    def load(cls, folder: Folder, name: str, *, n_columns: int, n_labels: int) -> LinearTree:
        """Open what `save` wrote, for rows of `n_columns`."""
        names = (f"{name}-level-{number}" for number in count())
        files = list(takewhile(lambda file: f"{file}.safetensors" in folder, names)) or [f"{name}-level-0"]
        layers: list[Layer] = []
        for file in files:
            n_above = len(layers[-1].children) if layers else 1
            n_children = n_labels if file == files[-1] else None
            layers.append(Layer.load(folder, file, n_columns=n_columns, n_above=n_above, n_children=n_children))
        return cls(tuple(layers))


class TextEncoder(Protocol):
    """Gives each text a vector."""

    def vectors(self, texts: TextReadings, run: Run) -> NDArray[np.float32]:
        """Return the vector of each text, (n_texts, width)."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of it."""


@dataclass(frozen=True, eq=False)
class TreeMember:
    """A trained tree and what it reads: TF-IDF, with the vector of an encoder beside it where there is one."""

    tree: LinearTree
    features: TextFeatures
    search: BeamOptions
    shares: ClusterShares | None = None
    """How its clusters share the texts, where that is kept."""
    encoder: TextEncoder | None = None
    vector_weight: float = 1.0
    """Length of the text vector beside TF-IDF."""

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text, which is encoded once."""
        rows = texts.rows(self.features, run)
        if self.encoder is not None:
            rows = with_embeddings(rows, self.encoder.vectors(texts, run), self.vector_weight)
        return self.tree.predict(rows, k, self.search, run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write tree and encoder into a model folder."""
        if self.encoder is not None:
            self.encoder.save(writer, name)
        self.tree.save(writer, name)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the encoder, how clusters share the texts, and the number of weights."""
        facts = [part.describe() for part in (self.encoder, self.shares) if part is not None]
        return {key: value for part in facts for key, value in part.items()} | {"n_weights": self.tree.n_weights}


def fit_tree(
    features: Rows,
    labels: LabelMatrix,
    index: LabelIndex,
    *,
    matcher: SolverOptions,
    ranker: RankerOptions,
    search: BeamOptions,
    seed: int = 0,
    run: Run | None = None,
    stage_work: int = STAGE_WORK,
) -> LinearTree:
    """Train the matcher level by level, then the ranker; `stage_work` is as in `fit_layer`."""
    run = run or Run()
    layers: list[Layer] = []
    levels, targets = index.levels(), index.targets(labels)
    for number, (level, members) in enumerate(zip(levels[:-1], targets, strict=False)):
        counts = index.counts(labels, number) if matcher.count_costs else None
        examples = Examples.of(members, level, everyone=number == 0, counts=counts)
        name = f"cluster weights {number + 1}"
        layers.append(
            fit_layer(features, level, examples, matcher, seed=seed, run=run, name=name, stage_work=stage_work)
        )
    hard = bool(layers) and ranker.negatives == "matcher"
    n_recalled = ranker.n_recalled_of(index.n_clusters, labels)
    last = fit_ranker(
        features,
        labels,
        index,
        _recalled(layers, features, n_recalled, search, run) if hard else None,
        ranker,
        seed=seed,
        run=run,
        stage_work=stage_work,
    )
    return LinearTree((*layers, last))


def _recalled(matcher: Sequence[Layer], texts: Rows, n: int, search: BeamOptions, run: Run) -> NDArray[np.int32]:
    """Return the n best clusters of every text: (n_texts, n), −1 where there are fewer."""
    beams = _beams(matcher, search, n)
    work = partial(_recall_span, WalkSpec.of(matcher, texts, beams, search, run))
    clusters = np.empty((len(texts), n), np.int32)
    for span, of_span in map_spans(work, len(texts), _widest(matcher, beams), name="hard negatives", run=run):
        clusters[span] = of_span
    return clusters


@dataclass(frozen=True)
class WalkSpec:
    """Texts, and the layers that they walk down."""

    layers: tuple[SharedArrays, ...]
    texts: SharedRows
    beams: tuple[int, ...]
    """Clusters kept of each level of the matcher."""
    search: BeamOptions

    @classmethod
    def of(cls, layers: Sequence[Layer], texts: Rows, beams: Sequence[int], search: BeamOptions, run: Run) -> WalkSpec:
        """Return the spec of jobs of this run."""
        shared = tuple(run.engine.share(f"layer-{number}", layer.arrays()) for number, layer in enumerate(layers))
        return cls(shared, texts.share(run.engine, "features"), tuple(beams), search)

    def open(self, span: slice) -> tuple[list[Layer], Rows]:
        """Return the layers and a span of the texts."""
        return [Layer.from_arrays(layer.open()) for layer in self.layers], self.texts.open().part(span.start, span.stop)


def _recall_span(spec: WalkSpec, span: slice) -> NDArray[np.int32]:
    """Return the best clusters of a span of texts; all layers are the matcher's."""
    matcher, texts = spec.open(span)
    return _walk_down(matcher, texts, spec.beams, spec.search)[0]


def _predict_span(spec: WalkSpec, k: int, span: slice) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best labels (n, k) of a span of texts and their log scores (n, k); the last layer ranks."""
    (*matcher, ranker), texts = spec.open(span)
    clusters, log_scores = _walk_down(matcher, texts, spec.beams, spec.search)
    search = spec.search
    return ranker.best(texts, clusters, log_scores, k, weight=search.cluster_weight, power=search.label_power)


def _beams(matcher: Sequence[Layer], search: BeamOptions, last: int) -> list[int]:
    """Return how many clusters are kept of each level of the matcher."""
    upper = search.deep_beam if search.deep_beam is not None and len(matcher) > 2 else search.upper_beam
    return [*(min(upper, len(layer.children)) for layer in matcher[:-1]), last][: len(matcher)]


def _widest(layers: Sequence[Layer], beams: Sequence[int]) -> int:
    """Return how many margins a text has at one level, at most."""
    return max(layer.widest(above) for layer, above in zip(layers, [1, *beams], strict=False))


def _walk_down(
    matcher: Sequence[Layer], texts: Rows, beams: Sequence[int], search: BeamOptions
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best clusters of each text and their log scores; the root if there is no matcher."""
    at = np.zeros((len(texts), 1), np.int32)
    score = np.zeros((len(texts), 1), np.float32)
    for layer, beam in zip(matcher, beams, strict=True):
        at, score = layer.best(texts, at, score, beam, power=search.cluster_power)
    return at, score
