"""Recall and rank with linear classifiers: walk down the label index with a beam, rank the labels reached.

    text features (n, n_features)  ->  TopK (n, k)

Inner levels are the matcher: its last keeps the `beam` best clusters of a text, those above `upper_beam`. The last
level is the ranker: its classifiers score the labels of those clusters. A label's score is the ranker's log score plus
`cluster_weight` times the matcher's.

The ranker may learn from the texts of its cluster only (Parabel), or also from the texts that the matcher
brings there wrongly (`matcher`, X-Transformer's way): it then meets in training what it will meet in use,
its margins can be compared across clusters, and a small `cluster_weight` is best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.engines.local import LocalEngine
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.linear.layer import Layer
from longtail.linear.training import Examples, SolverOptions, fit_layer
from longtail.options import Options
from longtail.progress import SILENT, Progress
from longtail.stages import NO_STAGES, Stages
from longtail.types import NO_LABEL, LabelMatrix, TopK

_ALWAYS_RECALLED = 8
_BUFFER = 1 << 21
"""Margins held at once by a thread in prediction."""
_BATCH, _SHARE = 8192, 512
"""Texts of one job: the more, the less often chunks are unpacked; fewer than `_SHARE` are not worth a thread."""


class RankerOptions(SolverOptions):
    """The classifiers of the labels."""

    cost_decay: Annotated[float, Field(ge=0, le=1)] | Literal["auto"] = "auto"
    """Both costs of a label with n texts are divided by n to this power: frequent labels need less pull. `auto` is
    0.9 · t^−0.4 for texts of t terms: 0.1 for long texts, 0.33 for titles."""
    threshold: float = Field(0.05, ge=0)
    """Weights smaller than this are dropped after training."""
    negatives: Literal["cluster", "matcher", "all"] = "matcher"
    """Texts without the label that it learns from: those with another label of its cluster; these and the ones
    that the matcher brings to the cluster; or all texts (DiSMEC)."""
    n_recalled: PositiveInt = 50
    """`matcher`: clusters that the matcher brings each text to; where they are few, a quarter of them, at least 8."""


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
        matched = _descend(self.layers[:-1], self.layers[-1], texts, k, search, engine, progress)
        return TopK(matched[0], np.exp(matched[1], where=matched[0] >= 0, out=matched[1]))

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


def spread(found: TopK, search: SearchOptions) -> TopK:
    """The same lists with scores that people can read: exp(−(−log score)^(1/p)) for p = `label_power`.

    Where the matcher is sure, that is exp(margin − 1) of the ranker: 0.37 for a margin of 0, where the scores that
    lists are ordered by are nearly all 0 or 1. The order stays.
    """
    if search.label_power == 0:
        return found
    with np.errstate(divide="ignore"):
        distance = -np.log(np.clip(found.scores, 0, 1))  # (n_texts, k)
    scores = np.exp(-(distance ** np.float32(1 / search.label_power)))
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
    n_recalled = min(ranker.n_recalled, max(_ALWAYS_RECALLED, index.n_clusters // 4))
    for number, (level, members) in enumerate(zip(index.levels(), index.targets(labels), strict=True)):
        last = number + 1 == len(index.parents)
        options: SolverOptions = ranker if last else matcher
        hard = last and layers and ranker.negatives == "matcher"
        counts = index.counts(labels, number) if options.count_costs and not last else None
        everyone = number == 0 or (last and ranker.negatives == "all")
        examples = Examples.of(
            members,
            level,
            _descend(layers, None, features, n_recalled, search, engine, progress)[0] if hard else None,
            everyone,
            counts,
            text_costs,
        )
        name = "label weights" if last else f"cluster weights {number + 1}"
        layers.append(fit_layer(features, level, examples, options, seed, engine, progress, stages, name))
    return LinearTree(tuple(layers))


def _descend(
    matcher: Sequence[Layer],
    ranker: Layer | None,
    texts: Rows,
    k: int,
    search: SearchOptions,
    engine: LocalEngine | None,
    progress: Progress,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best labels of every text with their log scores; without a ranker, the k best clusters, without scores."""
    layers = [*matcher, ranker] if ranker else [*matcher]
    kept = [min(search.upper_beam, len(layer.children)) for layer in matcher[:-1]]
    kept += [min(search.beam, len(matcher[-1].children)) if ranker else k] if matcher else []
    found = np.empty((len(texts), k), np.int32)
    scores = np.empty((len(texts), k if ranker else 0), np.float32)

    def some(span: tuple[int, int]) -> int:
        part = texts.part(*span)
        at = np.zeros((len(part), 1), np.int32)
        score = np.zeros((len(part), 1), np.float32)
        for layer, width in zip(matcher, kept, strict=True):
            at, score = layer.best(part, at, score, width, 1.0, search.cluster_power)
        if ranker:
            at, score = ranker.best(part, at, score, k, search.cluster_weight, search.label_power)
        found[span[0] : span[1]], scores[span[0] : span[1]] = at, score[:, : scores.shape[1]]
        return span[1] - span[0]

    widest = max(layer.widest(above) for layer, above in zip(layers, [1, *kept], strict=False))
    engine = engine or LocalEngine()
    share = -(-len(texts) // (2 * engine.n_threads))
    spans = list(_spans(len(texts), min(_BATCH, max(1, _BUFFER // widest), max(_SHARE, share))))
    if len(spans) == 1:
        some(spans[0])
        return found, scores
    with progress.step("predict" if ranker else "hard negatives", len(texts), "texts") as advance:
        for done in engine.map(some, spans):
            advance(done)
    return found, scores


def _spans(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))
