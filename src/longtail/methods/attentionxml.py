"""AttentionXML: a BiLSTM, and for each label attention of its own to the words of a text.

Where labels are not too many, one network scores all of them. Otherwise labels are clustered by their texts into a
tree, and there is one network a level: the first scores all clusters, each further one only the children of what the
one above found. An ensemble has one member, with its own tree, for each seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.ensemble import EnsembleOptions, combine
from longtail.labels.clusters import Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.needs import clustering_needs
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.nn.encoders.states import StatesOptions
from longtail.nn.heads.labelwise import LabelwiseOptions
from longtail.nn.levels import Levels
from longtail.nn.tagger import Tagger, columns_of
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TfidfOptions
from longtail.types import TopK


class AttentionTraining(TrainingOptions):
    """How each network is trained."""

    epochs: PositiveFloat = 10.0
    """How often every text is read."""
    batch_size: PositiveInt = 128
    """Texts of a step; above 128 an LSTM is slower on a GPU."""
    rate: PositiveFloat = 3e-3
    """Learning rate of the encoder."""
    bottleneck_rate: PositiveFloat = 3e-3
    """Learning rate of the layers that labels share."""
    head_rate: PositiveFloat = 2e-2
    """Learning rate of the labels' weights: they begin with even attention and have far to go."""
    decay: float = Field(0.0, ge=0)
    """Weight decay, of all but biases."""
    clip_norm: NonNegativeFloat = 50.0
    """Largest norm of all gradients together; of a sum over labels it is seldom below 5."""
    compile: Literal["auto", "on", "off"] = "off"
    """Start whole passes at once on a GPU (CUDA graphs), for which batches are padded to a few widths."""


class AttentionXMLOptions(MethodOptions):
    """Options of AttentionXML."""

    encoder: StatesOptions = StatesOptions()
    """What reads the texts."""
    labels: LabelwiseOptions = LabelwiseOptions()
    """Attention of labels, and the layers behind it."""
    tree: TreeOptions = TreeOptions(n_levels=0, max_leaf=64, fill=False)
    """How labels are clustered, one network a level; without levels, which is the default, one network scores all."""
    first_clusters: PositiveInt = 1
    """Levels of the tree with fewer clusters are left out: the first network has at least so many."""
    n_candidates: PositiveInt = 32
    """Clusters of the level above that a network looks into."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    training: AttentionTraining = AttentionTraining()
    """How each network is trained."""
    n_seeds: PositiveInt = 1
    """Members, with seeds from `seed` on."""
    ensemble: EnsembleOptions = EnsembleOptions()
    """How the members' lists are put together."""
    list_length: PositiveInt = 100
    """Labels a member's list has before members are put together."""


@METHODS.register("attentionxml")
class AttentionXML(Method):
    """A BiLSTM with label-wise attention, over all labels or down a tree of them; best on a GPU."""

    name = "attentionxml"
    options_class = AttentionXMLOptions
    precisions = ("auto", "fp32", "bf16")

    def _fit(self, split: Split, run: Run) -> None:
        options: AttentionXMLOptions = self.options
        self.indexes_: list[LabelIndex] = []
        self.members_: list[Tagger] = []
        for number in range(options.n_seeds):
            own, seed = run.within(f"member-{number}"), options.seed + number
            self.indexes_.append(self._index(split, seed, run, own))
            parts = options.encoder, options.training, seed, own
            self.members_.append(self._levels(self.indexes_[-1]).fit(split.texts, split.labels, *parts))

    def _index(self, split: Split, seed: int, run: Run, own: Run) -> LabelIndex:
        """The clusters of a member."""
        options: AttentionXMLOptions = self.options
        if not self._clusters:
            return LabelIndex.flat(split.labels.n_labels)
        features, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        parts = options.vectors, options.tree, seed, own, Sources(features.of_names)
        return cluster_labels(rows, split, *parts).below(options.first_clusters)

    @property
    def _clusters(self) -> bool:
        return self.options.tree.n_levels > 0 or self.options.tree.branching is not None

    def _levels(self, index: LabelIndex) -> Levels:
        return Levels(index, self.options.labels, self.options.n_candidates)

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        length = k if len(self.members_) == 1 else max(k, self.options.list_length)
        lists = [member.top_k(texts, length, run) for member in self.members_]
        return lists[0] if len(lists) == 1 else combine(lists, k, self.options.ensemble)

    def _save(self, writer: FolderWriter) -> None:
        for number, (member, index) in enumerate(zip(self.members_, self.indexes_, strict=True)):
            member.save(writer, f"member-{number}")
            writer.arrays(f"index-{number}", index.arrays())

    def _open(self, folder: Folder) -> None:
        names = range(self.options.n_seeds)
        self.indexes_ = [LabelIndex.from_arrays(dict(folder.arrays(f"index-{name}"))) for name in names]
        found = enumerate(self.indexes_)
        self.members_ = [self._levels(index).load(folder, f"member-{name}") for name, index in found]

    def describe(self) -> dict[str, Any]:
        """See `Method.describe`."""
        sizes = [[len(parent) for parent in index.parents] for index in self.indexes_]
        return {"networks": [member.describe() for member in self.members_], "levels": sizes}

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: the fields one after the other."""
        return {"encoder": cls.options_class.of(options, source=cls.name).encoder.reading(fields)}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return columns_of([self.options.encoder])

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        options: AttentionXMLOptions = self.options
        index = even_index(split.labels.n_seen(), options.tree).below(options.first_clusters)
        parts = options.encoder, options.training, options.n_seeds, measure, threads
        networks = self._levels(index).needs(split, *parts)
        return clustering_needs(split, options.features).then(networks) if self._clusters else networks
