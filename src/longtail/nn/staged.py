"""Score all labels, or recall clusters and rank the labels inside; in one training or in two.

    dynamic   one training: recall and rank learn together, from candidates that change as the recall learns
    static    two trainings, two encoders: candidates are fixed
    frozen    two trainings, one encoder, which is trained in the first one only

The last two are LightXML's Table 5 (BS, S). Their stages:

    1. recall       an encoder and one row of weights per cluster learn the clusters of each text
    2. candidates   (n_texts, n) the most likely clusters by the trained recall, computed once
    3. rank         an encoder, the bottleneck and one row per label learn to rank the labels of a text's candidates,
                    which include the clusters of its own labels

The encoder of the third stage begins with the weights of the first one. `static`: it is trained further, and in
prediction both read a text, one to recall and one to rank. `frozen`: it stays as it is and serves for both. Both
trainings hold out the same texts for validation; the weights of the recall are chosen by how well it ranks clusters.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, HeadInputs
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.precision import quantised
from longtail.nn.tagger import MakeNetwork, NetworkPlan, Tagger, split_rows
from longtail.persist import Folder
from longtail.run.run import Precision, Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

Negatives: TypeAlias = Literal["dynamic", "static", "frozen"]


class TwoEncoders(Network):
    """Recalls with one encoder and ranks with another; by default the first is a frozen copy of the second."""

    head: Shortlist

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0, recaller: Encoder | None = None) -> None:
        super().__init__(encoder, head, dropout)
        self.recaller = (copy.deepcopy(encoder) if recaller is None else recaller).requires_grad_(False)

    def read(self, batch: Batch) -> HeadInputs:
        """Return what the head needs to rank labels; clusters are recalled by the vectors of the other encoder."""
        return replace(super().read(batch), recall_vectors=self.recaller(*batch.inputs))

    def quantised(self, precision: Precision) -> Network:
        """Return the same head behind copies of both encoders in another precision."""
        encoder, recaller = quantised(self.encoder, precision), quantised(self.recaller, precision)
        return TwoEncoders(encoder, self.head, recaller=recaller)


class FrozenEncoder(Network):
    """A network whose encoder is not trained."""

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0) -> None:
        super().__init__(encoder.requires_grad_(False), head, dropout)


_NETWORKS: dict[Negatives, MakeNetwork] = {"dynamic": Network, "static": TwoEncoders, "frozen": FrozenEncoder}
_RANK_ALONE = {"parts": "rank", "negatives": "static"}


@dataclass(frozen=True, eq=False)
class Scoring:
    """How labels are scored, and how that is trained."""

    n_labels: int
    index: LabelIndex | None
    """The clusters of labels; None where every label is scored."""
    negatives: Negatives
    shortlist: ShortlistOptions
    table: LabelTableOptions

    @property
    def n_trainings(self) -> int:
        """Number of trainings, one after the other."""
        return 1 if self.negatives == "dynamic" else 2

    def head(self, width: int) -> Head:
        """Return the head for text vectors of a width."""
        if self.index is None:
            return Dense(width, self.n_labels, self.table)
        return Shortlist(width, self.index, self.shortlist, self.table)

    def fit(self, texts: TextReadings, labels: LabelMatrix, plan: NetworkPlan, run: Run | None = None) -> Tagger:
        """Train on texts and their labels, each training as `plan` says; return the network of the labels."""
        run = run or Run()
        if self.index is None or self.negatives == "dynamic":
            return Tagger.fit(texts, labels, plan, self.head, run=run)
        index = self.index
        clusters = labels.renumber(index.parents[-1], index.n_clusters)

        def recall_head(width: int) -> Head:
            return Dense(width, index.n_clusters, self.table)

        recall = Tagger.fit(texts, clusters, plan, recall_head, run=run.within("recall"))

        def find_candidates() -> dict[str, NDArray[np.int32]]:
            n_ranked = min(self.shortlist.n_clusters_ranked, index.n_clusters)
            kept, _ = split_rows(len(texts), plan.training, plan.seed)  # the trainer numbers these
            return {"clusters": recall.top_k(texts, n_ranked, run).labels[kept]}

        candidates = run.stages.arrays("candidates", find_candidates)[0]["clusters"]

        def rank_head(width: int) -> Head:
            head = Shortlist(width, index, self.shortlist.model_copy(update=_RANK_ALONE), self.table)
            head.start_from(recall.network.head)
            head.fix_candidates(candidates)
            return head

        network = _NETWORKS[self.negatives]
        ranker_run = run.within("rank")
        tagger = Tagger.fit(texts, labels, plan, rank_head, run=ranker_run, start=recall, make_network=network)
        tagger.facts["recall"] = recall.facts
        return tagger

    def load(self, folder: Folder, name: str) -> Tagger:
        """Open what `Tagger.save` wrote."""
        return Tagger.load(folder, name, self.head, _NETWORKS[self.negatives])
