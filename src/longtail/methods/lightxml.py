"""LightXML: one transformer that recalls label clusters and ranks the labels inside, trained at once.

Where labels are few enough, every label is scored and there are no clusters (C.3, small mode). Otherwise labels are
clustered by their texts, and the network learns from the labels of the clusters it recalls itself: negatives that grow
harder as it learns. An ensemble has one member for each encoder and seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pydantic import Field, NonNegativeInt, PositiveInt

from longtail.data.dataset import Split
from longtail.ensemble import EnsembleOptions, combine
from longtail.errors import ConfigError
from longtail.labels.clusters import Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.needs import clustering_needs
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.shortlist import ShortlistOptions
from longtail.nn.heads.table import TableOptions
from longtail.nn.needs import neural_needs
from longtail.nn.staged import Negatives, Scoring
from longtail.nn.tagger import Tagger, columns_of
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import PRECISIONS, Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TfidfOptions
from longtail.types import TopK


class LightXMLOptions(MethodOptions):
    """Options of LightXML."""

    encoders: tuple[TransformerOptions, ...] = Field((TransformerOptions(n_layers=5),), min_length=1)
    """What reads the texts; one member each."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector; the paper's is 0.5."""
    dense_up_to: NonNegativeInt = 50_000
    """Up to so many labels each is scored; above, labels are clustered and a shortlist is ranked."""
    labels: TableOptions = TableOptions()
    """How the labels' weights are kept and trained."""
    shortlist: ShortlistOptions = ShortlistOptions()
    """Recall and rank."""
    negatives: Negatives = "dynamic"
    """Where the ranker's wrong labels come from. `dynamic`, the paper's: from the clusters that the recall finds just
    now, while both learn. Or, for comparison, from fixed ones, found by a recall that is trained first.
    `static` (BS): a second encoder, which begins as that of the trained recall, learns to rank. `frozen` (S): one
    encoder, trained for recall only, stays as it is while the ranker learns. They matter above `dense_up_to`."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    tree: TreeOptions = TreeOptions(n_levels=1, max_leaf=100, fill=False)
    """How labels are clustered."""
    training: TrainingOptions = TrainingOptions(epochs=13.0, batch_size=64, rate=1e-4, head_rate=2e-3, clip_norm=1.0)
    """How the network is trained."""
    n_seeds: PositiveInt = 1
    """Members for each encoder, with seeds from `seed` on."""
    ensemble: EnsembleOptions = EnsembleOptions()
    """How the members' lists are put together."""
    list_length: PositiveInt = 100
    """Labels a member's list has before members are put together."""


@METHODS.register("lightxml")
class LightXML(Method):
    """A transformer with all labels, or a shortlist of them, on top; best on a GPU."""

    name = "lightxml"
    options_class = LightXMLOptions
    precisions = PRECISIONS

    def _fit(self, split: Split, run: Run) -> None:
        options: LightXMLOptions = self.options
        self.indexes_: list[LabelIndex | None] = []
        self.members_: list[Tagger] = []
        for number, (encoder, seed) in enumerate(self._plans()):
            own = run.within(f"member-{number}")
            self.indexes_.append(self._index(split, seed, run, own))
            scoring = self._scoring(self.indexes_[-1], split.labels.n_labels)
            parts = encoder, options.training, options.dropout
            self.members_.append(scoring.fit(split.texts, split.labels, *parts, seed, own))

    def _index(self, split: Split, seed: int, run: Run, own: Run) -> LabelIndex | None:
        """The clusters of a member; None where every label is scored."""
        options: LightXMLOptions = self.options
        if split.labels.n_labels <= options.dense_up_to:
            return None
        features, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        sources = Sources(features.of_names)
        return cluster_labels(rows, split, options.vectors, options.tree, seed, own, sources)

    def _scoring(self, index: LabelIndex | None, n_labels: int) -> Scoring:
        options: LightXMLOptions = self.options
        return Scoring(n_labels, index, options.negatives, options.shortlist, options.labels)

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        length = k if len(self.members_) == 1 else max(k, self.options.list_length)
        lists = [member.top_k(texts, length, run) for member in self.members_]
        return lists[0] if len(lists) == 1 else combine(lists, k, self.options.ensemble)

    def _save(self, writer: FolderWriter) -> None:
        for number, (member, index) in enumerate(zip(self.members_, self.indexes_, strict=True)):
            member.save(writer, f"member-{number}")
            if index is not None:
                writer.arrays(f"index-{number}", index.arrays())

    def _open(self, folder: Folder) -> None:
        self.indexes_, self.members_ = [], []
        for number, _ in enumerate(self._plans()):
            clustered = f"index-{number}.safetensors" in folder
            index = LabelIndex.from_arrays(dict(folder.arrays(f"index-{number}"))) if clustered else None
            self.indexes_.append(index)
            self.members_.append(self._scoring(index, len(self.vocabulary_)).load(folder, f"member-{number}"))

    def check(self, split: Split) -> None:
        """See `Method.check`; where every label is scored, there are no negatives to choose."""
        super().check(split)
        kind, most, n_labels = self.options.negatives, self.options.dense_up_to, split.labels.n_seen()
        if kind != "dynamic" and n_labels <= most:
            raise ConfigError(
                f"negatives '{kind}' must have more than dense_up_to labels ({most:,}), got {n_labels:,}, all of which "
                "are scored; lower dense_up_to, or leave negatives as they are"
            )

    def describe(self) -> dict[str, Any]:
        """See `Method.describe`."""
        return {"networks": [member.describe() for member in self.members_]}

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: the fields one after the other."""
        encoders = cls.options_class.of(options, source=cls.name).encoders
        return {"encoders": [encoder.reading(fields) for encoder in encoders]}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return columns_of(self.options.encoders)

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        options: LightXMLOptions = self.options
        n_labels = split.labels.n_seen()
        index = None if n_labels <= options.dense_up_to else even_index(n_labels, options.tree)
        scoring = self._scoring(index, n_labels)
        parts, n_times = (options.encoders, scoring.head, options.training), options.n_seeds * scoring.n_trainings
        networks = neural_needs(split, *parts, n_seeds=n_times, measure=measure, threads=threads)
        return networks if index is None else clustering_needs(split, options.features).then(networks)

    def _plans(self) -> Iterator[tuple[TransformerOptions, int]]:
        for encoder in self.options.encoders:
            for more in range(self.options.n_seeds):
                yield encoder, self.options.seed + more
