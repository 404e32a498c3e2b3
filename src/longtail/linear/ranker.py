"""Rank the labels of recalled clusters with one linear classifier per label.

    fit_ranker  features (n, n_features), labels, index, recalled clusters (n, b)  ->  Layer
    rank        Layer, features (n, n_features), clusters (n, b), log scores (n, b)  ->  TopK (n, k)

Who recalls does not matter: a linear tree does, or a neural matcher. The log score of a label is `cluster_weight`
times that of its cluster plus −max(0, 1 − margin)^`label_power` of its own, so scores lie between 0 and 1, and labels
of other clusters are absent. Margins of 1 and more would all score the same; `kernels.reference.beam` takes a hair
off, so that they keep the order of their margins.

The ranker may learn from the texts of its cluster only (Parabel, X-BERT), or also from the texts that recall brings
there wrongly (X-Transformer): it then meets in training what it will meet in use, its margins can be compared across
clusters, and a small `cluster_weight` is best. Texts of the cluster always take part, whether recalled or not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.errors import ConfigError, DataError
from longtail.kernels.rows import Rows, SharedRows
from longtail.labels.index import LabelIndex
from longtail.linear.layer import Layer
from longtail.linear.spans import BATCH, rank_spans
from longtail.linear.training import STAGE_WORK, Examples, SolverOptions, fit_layer
from longtail.options import Options
from longtail.run.engine import SharedArrays
from longtail.run.run import Run
from longtail.types import LabelMatrix, TopK

_ALWAYS_RECALLED = 8


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
    """`matcher`: clusters that are recalled for each text, at most; fewer where that is more than a quarter of all
    clusters, more than two for each label of a text, and more than 8."""

    def n_recalled_of(self, n_clusters: int, labels: LabelMatrix) -> int:
        """Return how many of `n_clusters` clusters are recalled for each text in training, where texts have `labels`.

        A text of many labels lies in many clusters itself. If recall brought it to no others, the ranker would see
        too few negatives: on Delicious (19 labels per text, 61 clusters), P@5 on held-out texts was 53.5 with a quarter
        of the clusters and 58.0 with two per label.
        """
        two_per_label = math.ceil(2 * len(labels.indices) / max(len(labels), 1))
        return min(self.n_recalled, max(_ALWAYS_RECALLED, n_clusters // 4, min(two_per_label, n_clusters)))


class ScoreOptions(Options):
    """How a label's score is computed from its cluster's and its own."""

    order: Literal["score", "margin"] = "score"
    """By the product of both scores; or by the ranker's margin alone, whose sigmoid is then the score
    (X-Transformer)."""
    cluster_weight: float = Field(1.0, ge=0)
    """How much the cluster's log score counts beside the label's; not used with `margin`."""
    label_power: int = Field(3, ge=0, le=8)
    """p in the label's score exp(−max(0, 1 − margin)^p); 0 for the sigmoid of the margin. Not used with `margin`."""

    @property
    def weight(self) -> float:
        """What the cluster's log score is multiplied by."""
        return 0.0 if self.order == "margin" else self.cluster_weight

    @property
    def power(self) -> int:
        """`label_power`, or 0: the log of a sigmoid has the order of the margins."""
        return 0 if self.order == "margin" else self.label_power


def fit_ranker(
    features: Rows,
    labels: LabelMatrix,
    index: LabelIndex,
    recalled: NDArray[np.int32] | None,
    options: RankerOptions,
    *,
    seed: int = 0,
    run: Run | None = None,
    stage_work: int = STAGE_WORK,
) -> Layer:
    """Train the last level of `index`.

    `recalled` (n_texts, b) are the clusters that the matcher recalled for each text; `stage_work` is as in `fit_layer`.
    """
    flat = len(index.parents) == 1
    if labels.n_texts != len(features):
        raise DataError(f"labels must be those of the {len(features):,} texts, got {labels.n_texts:,} rows")
    if options.negatives != "matcher" or flat:
        recalled = None
    elif recalled is None:
        raise ConfigError(
            "ranker.negatives 'matcher' needs the clusters that a matcher recalled, got none; recall them first, "
            "or use ranker.negatives 'cluster' or 'all'"
        )
    else:
        recalled = _checked(recalled, len(features), index.n_clusters)
    level = index.levels()[-1]
    examples = Examples.of(labels, level, recalled=recalled, everyone=flat or options.negatives == "all")
    del recalled  # large, and not needed while weights are trained
    return fit_layer(
        features, level, examples, options, seed=seed, run=run, name="label weights", stage_work=stage_work
    )


def rank(
    ranker: Layer,
    features: Rows,
    clusters: NDArray[np.int32],
    log_scores: NDArray[np.float32],
    k: int,
    options: ScoreOptions,
    *,
    run: Run | None = None,
    most: int = BATCH,
) -> TopK:
    """Return the k best labels of the recalled clusters of each text, with scores in 0..1; −1 marks an empty place.

    `clusters` (n_texts, b) and their `log_scores` (n_texts, b) have −1 where a text has fewer. At most `most` texts are
    ranked at once.
    """
    run = run or Run()
    clusters = _checked(clusters, len(features), len(ranker.child_ptr) - 1)
    log_scores = np.ascontiguousarray(log_scores, np.float32)
    _check_scores(clusters, log_scores, k)
    _check_columns(ranker, features)

    spec = RankSpec(
        ranker=run.engine.share("ranker", ranker.arrays()),
        features=features.share(run.engine, "features"),
        recalled=run.engine.share("recalled", {"clusters": clusters, "log_scores": log_scores}),
        k=k,
        options=options,
    )
    widest = ranker.widest(clusters.shape[1])
    return rank_spans(partial(rank_span, spec), len(features), k, widest=widest, run=run, most=most)


@dataclass(frozen=True)
class RankSpec:
    """What `rank_span` ranks, and by what."""

    ranker: SharedArrays
    """Arrays of a `Layer`."""
    features: SharedRows
    recalled: SharedArrays
    """`clusters` (n_texts, b) and their `log_scores` (n_texts, b)."""
    k: int
    options: ScoreOptions


def rank_span(spec: RankSpec, span: slice) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best labels (n, k) of a span of texts and their log scores (n, k)."""
    ranker, texts = Layer.from_arrays(spec.ranker.open()), spec.features.open().part(span.start, span.stop)
    clusters, log_scores = (spec.recalled.open()[name][span] for name in ("clusters", "log_scores"))
    options = spec.options
    return ranker.best(texts, clusters, log_scores, spec.k, weight=options.weight, power=options.power)


def _checked(clusters: NDArray[Any], n_texts: int, n_clusters: int) -> NDArray[np.int32]:
    """Return the clusters as int32, or raise: kernels do not check that clusters exist and are distinct."""
    if clusters.ndim != 2 or len(clusters) != n_texts or not np.issubdtype(clusters.dtype, np.integer):
        raise DataError(
            f"recalled clusters must be whole numbers of shape ({n_texts}, b), got {clusters.dtype} {clusters.shape}"
        )
    low, high = int(clusters.min(initial=-1)), int(clusters.max(initial=-1))
    if low < -1 or high >= n_clusters:
        raise DataError(f"recalled clusters must lie in 0 to {n_clusters - 1}, or be -1, got {low} to {high}")
    for start in range(0, n_texts, BATCH):  # a sorted copy of all would be large
        by_number = np.sort(clusters[start : start + BATCH], axis=1)
        twice = ((by_number[:, 1:] == by_number[:, :-1]) & (by_number[:, 1:] >= 0)).any(axis=1)
        if twice.any():
            raise DataError(
                f"recalled clusters of a text must be distinct, text {start + twice.argmax()} has one twice"
            )
    return np.ascontiguousarray(clusters, np.int32)


def _check_scores(clusters: NDArray[np.int32], log_scores: NDArray[np.float32], k: int) -> None:
    if k < 1:
        raise ConfigError(f"k must be at least 1, got {k}")
    if log_scores.shape != clusters.shape:
        raise DataError(f"log scores must have the shape of the clusters, {clusters.shape}, got {log_scores.shape}")
    recalled = log_scores[clusters >= 0]
    if not ((recalled <= 0) & (recalled > -np.inf)).all():
        raise DataError("log scores of clusters must be numbers of at most 0, got others; hand over logs of scores")


def _check_columns(ranker: Layer, features: Rows) -> None:
    """Raise if the ranker needs more columns; the last feature of each cluster is its largest."""
    ends = ranker.row_ptr[1:][np.diff(ranker.row_ptr) > 0] - 1
    needed = int(ranker.row_feature[ends].max(initial=-1)) + 1
    if needed > features.n_columns:
        raise DataError(
            f"features must have the columns that the ranker was trained on, at least {needed:,}, "
            f"got {features.n_columns:,}; make them the same way (with embeddings, where it had them)"
        )
