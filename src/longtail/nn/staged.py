"""Labels above an encoder: all of them scored, or recalled and ranked; and in which stages that is learned.

    dynamic   one training: recall and rank learn at once, from candidates that change as the recall learns
    static    two trainings, two encoders: candidates stay as they are
    frozen    two trainings, one encoder, which learns in the first one only

The last two are LightXML's Table 5 (BS, S). Their stages:

    1. recall       an encoder and one row of weights a cluster learn the clusters of each text
    2. candidates   (n_texts, n) the clusters that it now finds most likely, computed once
    3. rank         an encoder, the bottleneck and one row a label learn to rank the labels of a text's candidates,
                    the clusters of its own labels among them

The encoder of the third stage begins as that of the first one ended. `static`: it learns on, and in use both read a
text, one to recall and one to rank. `frozen`: it stays, and serves for both. Both trainings hold out the same texts
for validation; the recall is chosen by the clusters that it finds in them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from longtail.labels.index import LabelIndex
from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shortlist import Shortlist, ShortlistOptions
from longtail.nn.heads.table import TableOptions
from longtail.nn.network import Network
from longtail.nn.precision import lightened
from longtail.nn.tagger import MakeNetwork, Tagger, split_rows
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder
from longtail.run import Precision, Run
from longtail.types import LabelMatrix

Negatives: TypeAlias = Literal["dynamic", "static", "frozen"]


class TwoEncoders(Network):
    """Recalls with one encoder and ranks with another; by default the one that recalls is the other as it is now."""

    head: Shortlist

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0, recaller: Encoder | None = None) -> None:
        super().__init__(encoder, head, dropout)
        self.recaller = (copy.deepcopy(encoder) if recaller is None else recaller).requires_grad_(False)

    def top_k(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """See `Network.top_k`."""
        recalls = self.recaller(batch.ids, batch.mask)
        return self.head.top_k(self.encoder(batch.ids, batch.mask), k, recalls)

    def lightened(self, precision: Precision) -> Network:
        """See `Network.lightened`."""
        encoder, recaller = (lightened(part, precision) for part in (self.encoder, self.recaller))
        return TwoEncoders(encoder, self.head, recaller=recaller)


class FrozenEncoder(Network):
    """Trains its head alone."""

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0) -> None:
        super().__init__(encoder.requires_grad_(False), head, dropout)


_NETWORKS: dict[Negatives, MakeNetwork] = {"dynamic": Network, "static": TwoEncoders, "frozen": FrozenEncoder}
_RANK_ALONE = {"parts": "rank", "negatives": "static"}


@dataclass(frozen=True, eq=False)
class Scoring:
    """How labels are scored, and how that is learned."""

    n_labels: int
    index: LabelIndex | None
    """The clusters of labels; None where every label is scored."""
    negatives: Negatives
    shortlist: ShortlistOptions
    table: TableOptions

    @property
    def n_trainings(self) -> int:
        """Networks that are trained one after the other."""
        return 1 if self.negatives == "dynamic" else 2

    def head(self, width: int) -> Head:
        """The head above text vectors of a width."""
        if self.index is None:
            return Dense(width, self.n_labels, self.table)
        return Shortlist(width, self.index, self.shortlist, self.table)

    def fit(
        self,
        texts: pa.Table,
        labels: LabelMatrix,
        encoder: EncoderOptions,
        training: TrainingOptions,
        dropout: float = 0.0,
        seed: int = 0,
        run: Run | None = None,
    ) -> Tagger:
        """Train on texts and their labels; each training is as `training` says."""
        run = run or Run()
        if self.index is None or self.negatives == "dynamic":
            return Tagger.fit(texts, labels, encoder, self.head, training, dropout, seed, run)
        index, how = self.index, (training, dropout, seed)
        clusters = labels.renumber(index.parents[-1], index.n_clusters)

        def recall_head(width: int) -> Head:
            return Dense(width, index.n_clusters, self.table)

        recall = Tagger.fit(texts, clusters, encoder, recall_head, *how, run.within("recall"))

        def find() -> dict[str, NDArray[np.int32]]:
            n_ranked = min(self.shortlist.n_clusters_ranked, index.n_clusters)
            kept, _ = split_rows(len(texts), training, seed)  # the trainer numbers these
            return {"clusters": recall.top_k(texts, n_ranked, run).labels[kept]}

        candidates = run.stages.arrays("candidates", find)[0]["clusters"]

        def rank_head(width: int) -> Head:
            head = Shortlist(width, index, self.shortlist.model_copy(update=_RANK_ALONE), self.table)
            head.recall.load_state_dict(recall.network.head.tables()["table"].state_dict())
            head.fix_candidates(candidates)
            return head

        network = _NETWORKS[self.negatives]
        made = Tagger.fit(texts, labels, encoder, rank_head, *how, run.within("rank"), recall, network)
        made.facts["recall"] = recall.facts
        return made

    def load(self, folder: Folder, name: str) -> Tagger:
        """Open what `Tagger.save` wrote of one that was trained so."""
        return Tagger.load(folder, name, self.head, _NETWORKS[self.negatives])
