"""Label clusters of a text by linear classifiers on TF-IDF: a matcher for who ranks apart (X-BERT's linear one).

features (n, n_features)  ->  clusters (n, b), log scores (n, b)
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.linear.ranker import RankerOptions
from longtail.linear.training import SolverOptions
from longtail.linear.tree import LinearTree, SearchOptions, fit_tree
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.types import LabelMatrix

_LOWEST = np.float32(1e-30)
_BEAM = SearchOptions(beam=50, cluster_weight=1.0, label_power=3)


class LinearRecallOptions(Options):
    """A linear matcher."""

    kind: Literal["linear"] = "linear"
    """Which recall this is."""
    solver: SolverOptions = SolverOptions()
    """Classifiers of the clusters."""

    def reading(self, fields: str) -> dict[str, Any]:
        """The same: features say which fields are read."""
        return self.plain()


class LinearRecall:
    """A trained matcher: classifiers level by level, the clusters of the last level below."""

    def __init__(self, tree: LinearTree) -> None:
        self.tree = tree

    @classmethod
    def fit(
        cls,
        options: LinearRecallOptions,
        more: Any,
        texts: pa.Table,
        features: Rows,
        labels: LabelMatrix,
        index: LabelIndex,
        seed: int,
        run: Run,
    ) -> LinearRecall:
        """Train on the clusters of each text's labels; `more` (options of neural matchers) is not used."""
        above = LabelIndex(index.parents[:-1] if len(index.parents) > 1 else (np.zeros(1, np.int32),))
        targets = labels.renumber(index.parents[-1], index.n_clusters)
        ranker = RankerOptions.of({**options.solver.plain(), "negatives": "cluster"})
        parts = options.solver, ranker, _BEAM, seed, None, run.engine, run.progress, run.stages.within("matcher")
        return cls(fit_tree(features, targets, above, *parts))

    def clusters(
        self, texts: pa.Table, features: Rows, b: int, run: Run
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The b best clusters of each text with their log scores."""
        found = self.tree.predict(features, min(b, self.tree.n_labels), _BEAM, run.engine, run.progress)
        logs = np.log(np.maximum(np.where(found.labels >= 0, found.scores, 1), _LOWEST), dtype=np.float32)
        return found.labels, np.minimum(logs, 0)

    def joined(self, texts: pa.Table, features: Rows, weight: float, run: Run) -> Rows:
        """Features as they are: a linear matcher has no vectors to add."""
        return features

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        writer.manifest[name] = len(self.tree.layers)
        for level in range(len(self.tree.layers)):
            writer.arrays(f"{name}-level-{level}", self.tree.arrays(level))

    @classmethod
    def load(cls, folder: Folder, name: str, options: Any, n_clusters: int) -> LinearRecall:
        """Open what `save` wrote."""
        levels = range(folder.manifest[name])
        return cls(LinearTree.from_arrays([folder.arrays(f"{name}-level-{level}") for level in levels]))

    def facts(self) -> dict[str, Any]:
        """Its size."""
        return {"n_weights": self.tree.n_weights}
