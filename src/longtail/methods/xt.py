"""XT (extremeText): the sum of a text's word vectors, with a probabilistic label tree on top.

A text touches its own words and the nodes near its labels, so the time of a step hardly depends on the number of
labels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.labels.clusters import LabelInputs, Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.resources import estimate_clustering
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.nn.encoders.bag import FOR_ROWS, SUM_OF_WORDS, BagOptions
from longtail.nn.heads.tree import Tree, TreeHeadOptions
from longtail.nn.resources import Advice
from longtail.nn.tagger import MakeHead
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.fields import TfidfOptions
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import XTKeywords


class XTOptions(NetworkOptions):
    """Options of XT."""

    encoder: BagOptions = SUM_OF_WORDS
    """Words, and pairs of words, whose vectors are summed."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the text vector."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    tree: TreeOptions = TreeOptions(branching=2, max_leaf=16, fill=False)
    """How labels are clustered; the clusters of all levels are nodes."""
    nodes: TreeHeadOptions = TreeHeadOptions()
    """How nodes are initialised and searched."""
    training: TrainingOptions = FOR_ROWS.model_copy(update={"head_rate": 1.0})
    """How the network is trained."""


@METHODS.register("xt")
class XT(NetworkMethod):
    """Summed word vectors with a label tree on top; fast on a CPU, for many labels."""

    options_class = XTOptions
    advice = Advice("encoder", "encoder.vectors.width")

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[XTKeywords]) -> None: ...

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        options: XTOptions = self.options
        features, rows = texts.fit_features(split, options.features, run)
        inputs = LabelInputs(rows, split, options.seed, run, Sources(features.of_names))
        self.index_ = cluster_labels(inputs, options.vectors, options.tree)

    def _head(self, width: int) -> Tree:
        return Tree(width, self.index_, self.options.nodes)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        index = even_index(len(counts), self.options.tree)
        return lambda width: Tree(width, index, self.options.nodes)

    def _save_prepared(self, writer: FolderWriter) -> None:
        writer.arrays("index", self.index_.arrays())

    def _open_prepared(self, folder: Folder) -> None:
        self.index_ = LabelIndex.from_arrays(folder.arrays("index"), len(self.scored_labels_))

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return the memory, disk and, with `measure`, the time that training on `split` takes."""
        return estimate_clustering(split, self.options.features).then(
            super().estimate_resources(split, measure, threads)
        )
