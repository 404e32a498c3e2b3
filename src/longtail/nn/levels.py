"""Label-wise attention down a tree of labels: one network a level, each trained within what the one above found.

    1st level   an encoder and a row a cluster: every cluster is scored
    candidates  (n_texts, n) the clusters that it now finds most likely, computed once
    2nd level   the same for the children of a text's candidates, those of its own labels among them
    …           down to the labels; a tree without clusters has this one level only

Each network begins with encoder and shared layers as the one above has them, and has rows of its own. In use a text is
read by all of them, from the top: score(child) = σ(its logit) · score of its cluster. All hold out the same texts for
validation; a level is chosen by the clusters, the last one by the labels, that it finds in them.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from torch import Tensor

from longtail.data.dataset import Split
from longtail.labels.index import LabelIndex
from longtail.machine import Needs
from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.labelwise import Labelwise, LabelwiseOptions
from longtail.nn.heads.within import LabelwiseWithin
from longtail.nn.needs import Advice, neural_needs
from longtail.nn.network import Network
from longtail.nn.precision import lightened
from longtail.nn.tagger import MakeNetwork, Tagger, split_rows
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder
from longtail.run import Precision, Run
from longtail.types import LabelMatrix

_ADVICE = Advice("encoder", "encoder.hidden or labels.own_output")


class LevelNetwork(Network):
    """Hands the states of all words to its head; a lower level looks within what the one above finds."""

    head: Labelwise

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        dropout: float = 0.0,
        above: LevelNetwork | None = None,
        n_candidates: int = 1,
    ) -> None:
        """`n_candidates` of the level `above` are looked into; that one is not trained."""
        super().__init__(encoder, head, dropout)
        self.above = None if above is None else above.requires_grad_(False)
        self.n_candidates = n_candidates

    def forward(self, batch: Batch, share: float = 1.0, show: bool = False) -> Tensor:
        """See `Network.forward`."""
        if batch.targets is None:
            raise ValueError("a loss needs targets")
        states = self.dropout((self.encode or self.encoder)(batch.ids, batch.mask))
        return self.head.loss(states, batch.targets, share, show, batch.mask)

    def top_k(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """See `Network.top_k`."""
        logs, places = self.ranked(batch, k)
        return logs.exp().masked_fill(places < 0, -float("inf")), places

    def ranked(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Log scores and places of the k best children; places are −1 where there are fewer."""
        states = self.encoder(batch.ids, batch.mask)
        if self.above is None or not isinstance(self.head, LabelwiseWithin):
            return self.head.ranked(states, k, batch.mask)
        logs, places = self.above.ranked(batch, self.n_candidates)
        within = self.above.head
        clusters = within.labels[places] if isinstance(within, LabelwiseWithin) else places
        return self.head.ranked_within(states, k, batch.mask, clusters.clamp(min=0), logs)

    def lightened(self, precision: Precision) -> Network:
        """See `Network.lightened`; on a GPU an LSTM is faster with weights in float32 that are rounded when used."""
        if self.head.rows.is_cuda:
            return self
        above = None if self.above is None else cast(LevelNetwork, self.above.lightened(precision))
        return LevelNetwork(lightened(self.encoder, precision), self.head, 0.0, above, self.n_candidates)


@dataclass(frozen=True, eq=False)
class Levels:
    """The networks of a tree of labels, and how they are learned."""

    index: LabelIndex
    """A level of networks for each of its levels, the labels counted in."""
    labelwise: LabelwiseOptions
    n_candidates: int
    """Clusters that are looked into."""

    @property
    def n_levels(self) -> int:
        """Networks that are trained one after the other."""
        return len(self.index.parents)

    def head(self, level: int, width: int) -> Labelwise:
        """The head of a level above states of a width."""
        if level == 0:
            return Labelwise(width, len(self.index.parents[0]), self.labelwise)
        above, own = self.index.parents[level - 1 : level + 1]
        return LabelwiseWithin(width, LabelIndex((np.zeros(len(above), np.int32), own)), self.labelwise)

    def fit(
        self,
        texts: pa.Table,
        labels: LabelMatrix,
        encoder: EncoderOptions,
        training: TrainingOptions,
        seed: int = 0,
        run: Run | None = None,
    ) -> Tagger:
        """Train on texts and their labels, level by level, each as `training` says; gives that of the labels."""
        run = run or Run()
        made: Tagger | None = None
        for level, targets in enumerate(self.index.targets(labels)):
            own = run.within(f"level-{level}")
            made = self.fit_level(level, made, texts, targets, encoder, training, seed, own)
        if made is None:
            raise ValueError("an index must have a level")
        return made

    def fit_level(
        self,
        level: int,
        above: Tagger | None,
        texts: pa.Table,
        targets: LabelMatrix,
        encoder: EncoderOptions,
        training: TrainingOptions,
        seed: int,
        run: Run,
    ) -> Tagger:
        """Train one level on the clusters (or labels) of its own; `above` is that of the level before."""
        if above is None:
            parts = encoder, lambda width: self.head(level, width), training
            return Tagger.fit(texts, targets, *parts, seed=seed, run=run, make_network=LevelNetwork)
        upper, n = cast(LevelNetwork, above.network), self._n_candidates(level)

        def find() -> dict[str, NDArray[np.int32]]:
            kept, _ = split_rows(len(texts), training, seed)  # the trainer numbers these
            return {"clusters": above.top_k(texts, n, run).labels[kept]}

        candidates = run.stages.arrays("candidates", find)[0]["clusters"]

        def head(width: int) -> Head:
            made = cast(LabelwiseWithin, self.head(level, width))
            made.shared.load_state_dict(upper.head.shared.state_dict())
            made.fix_candidates(candidates)
            return made

        def network(encoder: Encoder, head: Head, dropout: float) -> Network:
            return LevelNetwork(encoder, head, dropout, upper, n)

        made = Tagger.fit(texts, targets, encoder, head, training, 0.0, seed, run, above, network)
        made.facts["above"] = above.facts
        return made

    def needs(
        self,
        split: Split,
        encoder: EncoderOptions,
        training: TrainingOptions,
        n_seeds: int = 1,
        measure: bool = False,
        threads: int | None = None,
    ) -> Needs:
        """What it takes to train all levels `n_seeds` times; see `neural_needs`."""
        how: dict[str, Any] = {"n_seeds": n_seeds, "advice": _ADVICE, "measure": measure, "threads": threads}
        made = Needs(0, 0, "")
        for level in range(self.n_levels):
            n_readings = float(level < self.n_levels - 1)  # for the candidates of the next
            parts = [encoder], partial(self._outline, level, training.batch_size), training
            own = neural_needs(split, *parts, n_readings=n_readings, make_network=LevelNetwork, **how)
            made = own if level == 0 else made.then(own)
        return made

    def _outline(self, level: int, n_texts: int, width: int) -> Head:
        """The head of a level for the first `n_texts` texts, with candidates that say nothing."""
        head = self.head(level, width)
        if isinstance(head, LabelwiseWithin):
            first = np.arange(n_texts)[:, None] + np.arange(self._n_candidates(level))
            head.fix_candidates(first % head.n_clusters)
        return head

    def load(self, folder: Folder, name: str) -> Tagger:
        """Open what `Tagger.save` wrote of one that was trained so."""
        return Tagger.load(folder, name, lambda width: self.head(self.n_levels - 1, width), self.networks())

    def networks(self) -> MakeNetwork:
        """Makes the network of the labels with all those above."""

        def make(encoder: Encoder, head: Head, dropout: float) -> Network:
            above: LevelNetwork | None = None
            for level in range(self.n_levels - 1):
                other = copy.deepcopy(encoder, {id(encoder.tokeniser): encoder.tokeniser})
                above = LevelNetwork(other, self.head(level, encoder.width), 0.0, above, self._n_candidates(level))
            return LevelNetwork(encoder, head, dropout, above, self._n_candidates(self.n_levels - 1))

        return make

    def _n_candidates(self, level: int) -> int:
        """Clusters that a level looks into: not more than there are."""
        return min(self.n_candidates, len(self.index.parents[level - 1])) if level else 1
