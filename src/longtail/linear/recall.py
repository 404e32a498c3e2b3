"""Recall label clusters with linear classifiers on TF-IDF, and rank the labels of recalled clusters.

LinearRecall    features (n, n_features)  ->  clusters (n, b), log scores (n, b): X-BERT's linear matcher
RecallAndRank   texts, TF-IDF rows  ->  clusters by any recall  ->  TopK (n, k) by a linear ranker
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from longtail.kernels.rows import Rows
from longtail.labels.clusters import ClusterShares
from longtail.labels.index import LabelIndex
from longtail.labels.recall import Recall, Recalled
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, ScoreOptions, rank
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, fit_tree
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.features import TextFeatures
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix, TopK

_BEAM = BeamOptions(beam=50, cluster_weight=1.0, label_power=3)


class LinearRecallOptions(Options):
    """A linear matcher."""

    kind: Literal["linear"] = "linear"
    """Which recall this is."""
    solver: SolverOptions = SolverOptions()
    """Classifiers of the clusters."""

    columns: ClassVar[tuple[str, ...]] = ()
    optional_columns: ClassVar[tuple[str, ...]] = ()
    """It reads features; the options of these say which columns they are made of."""

    def options_for_fields(self, fields: str) -> dict[str, Any]:
        """Return these options: those of the features say which fields are read."""
        return self.plain()


class LinearRecall:
    """A trained matcher: classifiers level by level, the clusters of the last level below."""

    def __init__(self, tree: LinearTree) -> None:
        self.tree = tree

    @classmethod
    def fit(
        cls,
        features: Rows,
        labels: LabelMatrix,
        index: LabelIndex,
        options: LinearRecallOptions,
        *,
        seed: int,
        run: Run,
    ) -> LinearRecall:
        """Train on the clusters of each text's labels."""
        above = LabelIndex(index.parents[:-1] if len(index.parents) > 1 else (np.zeros(1, np.int32),))
        tree = fit_tree(
            features,
            labels.renumber(index.parents[-1], index.n_clusters),
            above,
            matcher=options.solver,
            ranker=RankerOptions.of({**options.solver.plain(), "negatives": "cluster"}),
            search=_BEAM,
            seed=seed,
            run=run.within("matcher"),
        )
        return cls(tree)

    def read(self, texts: TextReadings, features: Rows, n: int, run: Run, *, vectors: bool = True) -> Recalled:
        """Return the n best clusters of each text by its `features`; a linear matcher has no text vectors."""
        return Recalled.of(self.tree.predict(features, min(n, self.tree.n_labels), _BEAM, run))

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.manifest[name] = len(self.tree.layers)
        self.tree.save(writer, name)

    @classmethod
    def load(cls, folder: Folder, name: str, *, n_columns: int, n_clusters: int) -> LinearRecall:
        """Open what `save` wrote, for rows of `n_columns`."""
        return cls(LinearTree.load(folder, name, n_columns=n_columns, n_labels=n_clusters))

    @property
    def width(self) -> int:
        """Numbers of a text vector: none."""
        return 0

    def describe(self) -> dict[str, Any]:
        """Return the number of weights."""
        return {"n_weights": self.tree.n_weights}


@dataclass(frozen=True, eq=False)
class RecallAndRank:
    """A trained matcher and the ranker below it."""

    recall: Recall
    ranker: Layer
    features: TextFeatures
    n_clusters: int
    """Clusters whose labels are ranked."""
    vector_weight: float
    """Length of the matcher's text vector beside TF-IDF in what the ranker reads; 0 leaves it out."""
    score: ScoreOptions
    shares: ClusterShares | None
    """None in models of earlier versions, which did not save it."""

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text, which is read once."""
        rows = texts.rows(self.features, run)
        recalled = self.recall.read(texts, rows, self.n_clusters, run, vectors=self.vector_weight > 0)
        joined = recalled.joined(rows, self.vector_weight)
        return rank(self.ranker, joined, recalled.clusters, recalled.log_scores, k, self.score, run=run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.recall.save(writer, name)
        writer.arrays(f"{name}-ranker", self.ranker.arrays())

    def describe(self) -> dict[str, Any]:
        """Return the facts of the matcher."""
        return self.recall.describe()

    def describe_clusters(self) -> list[dict[str, Any]]:
        """Return the number of the ranker's weights, and how clusters share the texts, where that is known."""
        return [{**self.shares.describe(), "n_weights": self.ranker.n_weights}] if self.shares else []
