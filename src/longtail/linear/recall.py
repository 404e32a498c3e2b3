"""Recall label clusters with linear classifiers on TF-IDF: X-BERT's linear matcher.

features (n, n_features)  ->  clusters (n, b), log scores (n, b)
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.labels.recall import Recalled
from longtail.linear.ranker import RankerOptions
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, fit_tree
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

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
    def load(cls, folder: Folder, name: str) -> LinearRecall:
        """Open what `save` wrote."""
        return cls(LinearTree.load(folder, name))

    def describe(self) -> dict[str, Any]:
        """Return the number of weights."""
        return {"n_weights": self.tree.n_weights}
