"""XT (extremeText): the vectors of a text's words added up, and a probabilistic label tree on top.

A text touches its own words and the nodes near its labels, so the time of a step hardly depends on how many labels
there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.labels.clusters import Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.needs import clustering_needs
from longtail.methods.base import METHODS, Needs
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.nn.averaging import AveragingOptions
from longtail.nn.encoders.bag import BagOptions
from longtail.nn.heads.tree import Tree, TreeHeadOptions
from longtail.nn.needs import Advice
from longtail.nn.schedules import ScheduleOptions
from longtail.nn.tagger import MakeHead
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TfidfOptions
from longtail.text.vectors import WordVectorOptions


class XTOptions(NetworkOptions):
    """Options of XT."""

    encoder: BagOptions = BagOptions(divisor="root", vectors=WordVectorOptions(width=100, spread=0.01))
    """Words, and pairs of words, whose vectors are added up."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout of the text vector."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    tree: TreeOptions = TreeOptions(branching=2, max_leaf=16, fill=False)
    """How labels are clustered; all its levels are nodes."""
    nodes: TreeHeadOptions = TreeHeadOptions()
    """Where the nodes start from, and how they are searched."""
    training: TrainingOptions = TrainingOptions(
        epochs=15.0,
        batch_size=128,
        rate=0.03,
        head_rate=1.0,
        decay=0.0,
        schedule=ScheduleOptions(warmup=0.0),
        averaging=AveragingOptions(kind="none"),
    )
    """How the network is trained."""


@METHODS.register("xt")
class XT(NetworkMethod):
    """Word vectors added up, with a label tree on top; quick on a CPU, for many labels."""

    name = "xt"
    options_class = XTOptions
    advice = Advice("encoder", "encoder.vectors.width")

    def _prepare(self, split: Split, run: Run) -> None:
        options: XTOptions = self.options
        features, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        parts = options.vectors, options.tree, options.seed, run, Sources(features.of_names)
        self.index_ = cluster_labels(rows, split, *parts)

    def _head(self, width: int) -> Tree:
        return Tree(width, self.index_, self.options.nodes)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        index = even_index(len(counts), self.options.tree)
        return lambda width: Tree(width, index, self.options.nodes)

    def _save_parts(self, writer: FolderWriter) -> None:
        writer.arrays("index", self.index_.arrays())

    def _open_parts(self, folder: Folder) -> None:
        self.index_ = LabelIndex.from_arrays(dict(folder.arrays("index")))

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        return clustering_needs(split, self.options.features).then(super().needs(split, measure, threads))
