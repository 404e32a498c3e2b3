"""AttentionXML: a BiLSTM, and for each label its own attention to the words of a text.

If there are not too many labels, one network scores all of them. Otherwise labels are clustered by their texts into a
tree, with one network per level: the first scores all clusters, each further one only the children of the clusters
that the level above found. An ensemble has one member, with its own tree, per seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.labels.clusters import LabelInputs, Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.resources import estimate_clustering
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.members import EnsembleMethod, MemberOptions
from longtail.nn.clustered import ClusteredTagger, load_index
from longtail.nn.encoders.bilstm_states import StatesOptions
from longtail.nn.heads.labelwise import LabelwiseOptions
from longtail.nn.levels import Levels
from longtail.nn.tagger import NetworkPlan, Tagger, rows_held_out
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder
from longtail.run.run import Run
from longtail.text.fields import TfidfOptions
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import AttentionXMLKeywords


class AttentionTraining(TrainingOptions):
    """How each network is trained."""

    epochs: PositiveFloat = 10.0
    """Number of passes over the training texts."""
    batch_size: PositiveInt = 128
    """Texts per step; with more than 128 an LSTM is slower on a GPU."""
    rate: PositiveFloat = 3e-3
    """Learning rate of the encoder."""
    bottleneck_rate: PositiveFloat = 3e-3
    """Learning rate of the layers that labels share."""
    head_rate: PositiveFloat = 2e-2
    """Learning rate of the labels' weights; high, because they begin with uniform attention."""
    decay: float = Field(0.0, ge=0)
    """Weight decay, except of biases."""
    clip_norm: NonNegativeFloat = 50.0
    """Clip the norm of all gradients to this value; for a loss summed over labels the norm is seldom below 5."""
    compile: Literal["auto", "on", "off"] = "off"
    """Launch whole passes at once on a GPU (CUDA graphs), for which batches are padded to a few widths."""


class AttentionXMLOptions(MemberOptions):
    """Options of AttentionXML."""

    encoder: StatesOptions = StatesOptions()
    """What reads the texts."""
    labels: LabelwiseOptions = LabelwiseOptions()
    """Attention of labels, and the layers above it."""
    tree: TreeOptions = TreeOptions(n_levels=0, max_leaf=64, fill=False)
    """How labels are clustered, with one network per level. By default there are no levels, and one network scores all
    labels."""
    first_clusters: PositiveInt = 1
    """Levels with fewer clusters are left out of the tree."""
    n_candidates: PositiveInt = 32
    """Clusters of the level above whose children a network scores."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    training: AttentionTraining = AttentionTraining()
    """How each network is trained."""


@METHODS.register("attentionxml")
class AttentionXML(EnsembleMethod[ClusteredTagger]):
    """A BiLSTM with label-wise attention, over all labels or down a tree of them; best on a GPU."""

    options_class = AttentionXMLOptions
    precisions = ("auto", "fp32", "bf16")
    keeps_texts_out = True
    trains_networks = True
    text_options = ("encoder",)

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[AttentionXMLKeywords]) -> None: ...

    def _plans(self) -> Iterable[NetworkPlan]:
        options: AttentionXMLOptions = self.options
        return [NetworkPlan(options.encoder, options.training, seed=seed) for seed in options.seeds]

    def _validation_rows(self, n_texts: int) -> NDArray[np.int64]:
        return rows_held_out(self._plans(), n_texts)

    def _fit_member(self, plan: NetworkPlan, split: Split, texts: TextReadings, run: Run) -> ClusteredTagger:
        index = self._cluster(plan.seed, split, texts, run)
        return ClusteredTagger(self._levels(index).fit(texts, split.labels, plan, run), index)

    def _cluster(self, seed: int, split: Split, texts: TextReadings, run: Run) -> LabelIndex:
        """Return the clusters of a member."""
        options: AttentionXMLOptions = self.options
        if not self._has_clusters:
            return LabelIndex.flat(split.labels.n_labels)
        features, rows = texts.fit_features(split, options.features, run)
        inputs = LabelInputs(rows, split, seed, run, Sources(features.of_names))
        index = cluster_labels(inputs, options.vectors, options.tree)
        return index.below(options.first_clusters)

    @property
    def _has_clusters(self) -> bool:
        return self.options.tree.n_levels > 0 or self.options.tree.branching is not None

    def _levels(self, index: LabelIndex) -> Levels:
        return Levels(index, self.options.labels, self.options.n_candidates)

    def _open_member(self, plan: NetworkPlan, folder: Folder, name: str) -> ClusteredTagger:
        index = load_index(folder, name, len(self.scored_labels_)) or LabelIndex.flat(len(self.scored_labels_))
        return ClusteredTagger(self._levels(index).load(folder, name), index)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the networks and the sizes of their levels."""
        indexes = [member.index for member in self.members_]
        sizes = [[len(parent) for parent in index.parents] for index in indexes if index is not None]
        return {**super().describe(), "levels": sizes}

    def exported_network(self) -> Tagger:
        """Return the network of the only member."""
        return self._recordable(self._only_member().tagger)

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return the memory, disk and, with `measure`, the time that training on `split` takes."""
        options: AttentionXMLOptions = self.options
        index = even_index(split.labels.n_seen(), options.tree).below(options.first_clusters)
        plan = NetworkPlan(options.encoder, options.training)
        networks = self._levels(index).estimate_resources(
            split, plan, n_seeds=options.n_seeds, measure=measure, threads=threads
        )
        return estimate_clustering(split, options.features).then(networks) if self._has_clusters else networks
