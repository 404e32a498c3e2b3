"""Recall and rank with linear classifiers: walk down the label index with a beam, rank the labels reached.

    text features (n, n_features)  ->  TopK (n, k)

Inner levels are the matcher: its last keeps the `beam` best clusters of a text, those above `upper_beam`. The last
level is the ranker (`linear.ranker`): its classifiers score the labels of those clusters. A label's score is the
ranker's log score plus `cluster_weight` times the matcher's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.engines.local import LocalEngine
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, ScoreOptions, fit_ranker, rank_as_recalled
from longtail.linear.spans import BATCH as _BATCH
from longtail.linear.spans import each_span
from longtail.linear.training import Examples, SolverOptions, fit_layer
from longtail.options import Options
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages
from longtail.types import NO_LABEL, LabelMatrix, TopK


class SearchOptions(Options):
    """How labels are searched."""

    beam: PositiveInt = 50
    """Clusters kept of the last level, whose labels are ranked."""
    upper_beam: PositiveInt = 20
    """Clusters kept of each level above."""
    cluster_weight: float = Field(0.4, ge=0)
    """How much the matcher's log score counts beside the ranker's."""
    cluster_power: int = Field(3, ge=0, le=8)
    """p in the matcher's score exp(−max(0, 1 − margin)^p); 0 for the sigmoid of the margin."""
    label_power: int = Field(4, ge=0, le=8)
    """The same for the ranker's score."""

    @property
    def score(self) -> ScoreOptions:
        """The part that the ranker needs."""
        return ScoreOptions(cluster_weight=self.cluster_weight, label_power=self.label_power)


@dataclass(frozen=True, eq=False)
class LinearTree:
    """A chain of layers from the root to the labels."""

    layers: tuple[Layer, ...]

    @property
    def n_labels(self) -> int:
        """Labels at the bottom."""
        return len(self.layers[-1].children)

    def predict(
        self,
        texts: Rows,
        k: int,
        search: SearchOptions,
        engine: LocalEngine | None = None,
        progress: Progress = SILENT,
    ) -> TopK:
        """The k best labels of each text, with scores in 0..1."""
        *matcher, ranker = self.layers
        beams = _beams(matcher, search, min(search.beam, len(matcher[-1].children)) if matcher else 1)

        def recall(span: slice, part: Rows) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
            return _walk_down(matcher, part, beams, search)

        widest = _widest(self.layers, beams)
        return rank_as_recalled(ranker, texts, recall, k, search.score, widest, engine, progress, _BATCH)

    @property
    def n_weights(self) -> int:
        """Weights of all layers."""
        return sum(layer.n_weights for layer in self.layers)

    def arrays(self, number: int) -> dict[str, NDArray[Any]]:
        """Arrays of one layer, for storing."""
        return self.layers[number].arrays()

    @classmethod
    def from_arrays(cls, layers: Sequence[dict[str, NDArray[Any]]]) -> LinearTree:
        """From the arrays of all layers."""
        return cls(tuple(Layer.from_arrays(arrays) for arrays in layers))


def spread(found: TopK, search: SearchOptions | ScoreOptions) -> TopK:
    """The same lists with scores that people can read: exp(−(−log score)^(1/p)) for p = `label_power`.

    Where the matcher is sure, that is exp(margin − 1) of the ranker: 0.37 for a margin of 0, where the scores that
    lists are ordered by are nearly all 0 or 1. The order stays. Votes of members by place, which go beyond 1, stay too.
    """
    power = search.power if isinstance(search, ScoreOptions) else search.label_power
    if power == 0 or found.scores.max(initial=0) > 1:
        return found
    with np.errstate(divide="ignore"):
        distance = -np.log(np.clip(found.scores, 0, 1))  # (n_texts, k)
    scores = np.exp(-(distance ** np.float32(1 / power)))
    return TopK(found.labels, np.where(found.labels == NO_LABEL, found.scores, scores))


def fit_tree(
    features: Rows,
    labels: LabelMatrix,
    index: LabelIndex,
    matcher: SolverOptions,
    ranker: RankerOptions,
    search: SearchOptions,
    seed: int = 0,
    text_costs: NDArray[np.float32] | None = None,
    engine: LocalEngine | None = None,
    progress: Progress = SILENT,
    stages: Stages = NO_STAGES,
) -> LinearTree:
    """Train the matcher level by level, then the ranker."""
    engine = engine or LocalEngine()
    layers: list[Layer] = []
    levels, targets = index.levels(), index.targets(labels)
    for number, (level, members) in enumerate(zip(levels[:-1], targets, strict=False)):
        counts = index.counts(labels, number) if matcher.count_costs else None
        examples = Examples.of(members, level, None, number == 0, counts, text_costs)
        name = f"cluster weights {number + 1}"
        layers.append(fit_layer(features, level, examples, matcher, seed, engine, progress, stages, name))
    hard = bool(layers) and ranker.negatives == "matcher"
    n_recalled = ranker.n_recalled_of(index.n_clusters)
    last = fit_ranker(
        features,
        labels,
        index,
        _recalled(layers, features, n_recalled, search, engine, progress) if hard else None,
        ranker,
        seed,
        engine,
        progress,
        stages,
        text_costs,
    )
    return LinearTree((*layers, last))


def _recalled(
    matcher: Sequence[Layer], texts: Rows, n: int, search: SearchOptions, engine: LocalEngine, progress: Progress
) -> NDArray[np.int32]:
    """The n best clusters of every text: (n_texts, n), −1 where there are fewer."""
    beams = _beams(matcher, search, n)
    found = np.empty((len(texts), n), np.int32)

    def some(span: slice) -> None:
        found[span] = _walk_down(matcher, texts.part(span.start, span.stop), beams, search)[0]

    each_span(some, len(texts), _widest(matcher, beams), "hard negatives", engine, progress, _BATCH)
    return found


def _beams(matcher: Sequence[Layer], search: SearchOptions, last: int) -> list[int]:
    """Clusters kept of each level of the matcher."""
    return [*(min(search.upper_beam, len(layer.children)) for layer in matcher[:-1]), last][: len(matcher)]


def _widest(layers: Sequence[Layer], beams: Sequence[int]) -> int:
    """Margins of one text at one level, at most."""
    return max(layer.widest(above) for layer, above in zip(layers, [1, *beams], strict=False))


def _walk_down(
    matcher: Sequence[Layer], texts: Rows, beams: Sequence[int], search: SearchOptions
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best clusters of each text and their log scores; the root where there is no matcher."""
    at = np.zeros((len(texts), 1), np.int32)
    score = np.zeros((len(texts), 1), np.float32)
    for layer, beam in zip(matcher, beams, strict=True):
        at, score = layer.best(texts, at, score, beam, 1.0, search.cluster_power)
    return at, score
