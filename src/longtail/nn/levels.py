"""Label-wise attention down a tree of labels: one network per level, trained on the candidates of the level above.

    1st level   an encoder and one row of weights per cluster: every cluster is scored
    candidates  (n_texts, n) the most likely clusters by the trained first level, computed once
    2nd level   the same for the children of a text's candidates, which include the clusters of its own labels
    …           down to the labels; a tree without clusters has this one level only

Each network begins with the encoder and the shared layers of the level above, and has rows of its own. In prediction a
text is read by all networks, from the top: score(child) = σ(its logit) · score of its cluster. All levels hold out the
same texts for validation; the weights of a level are chosen by how well it ranks its clusters, or labels, there.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Unpack, cast

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.labels.index import LabelIndex
from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, HeadInputs
from longtail.nn.heads.labelwise import Labelwise, LabelwiseOptions
from longtail.nn.heads.labelwise_candidates import LabelwiseWithin
from longtail.nn.network import Network
from longtail.nn.precision import quantised
from longtail.nn.resources import Advice, EstimateKeywords, estimate_network
from longtail.nn.tagger import MakeNetwork, NetworkPlan, Tagger, split_rows
from longtail.persist import Folder
from longtail.run.resources import ResourceEstimate
from longtail.run.run import Precision, Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix

_ADVICE = Advice("encoder", "encoder.hidden or labels.own_output")


class LevelNetwork(Network):
    """Hands the states of all words to its head; a lower level scores the children of what the level above finds."""

    head: Labelwise

    def __init__(
        self,
        encoder: Encoder,
        head: Head,
        dropout: float = 0.0,
        above: LevelNetwork | None = None,
        n_candidates: int = 1,
    ) -> None:
        """Below the first level, score the children of `n_candidates` clusters that the frozen level `above` finds."""
        super().__init__(encoder, head, dropout)
        self.above = None if above is None else above.requires_grad_(False)
        self.n_candidates = n_candidates

    def read(self, batch: Batch) -> HeadInputs:
        """Return token states, and below the first level the clusters that the level above finds."""
        inputs = super().read(batch)
        if self.above is None:
            return inputs
        logs, places = self.above.head.ranked(self.above.read(batch), self.n_candidates)
        clusters = self.above.head.labels_at(places).clamp(min=0)
        return replace(inputs, clusters=clusters, log_scores=logs)

    def quantised(self, precision: Precision) -> Network:
        """Return the network in another precision; on a GPU the same, as an LSTM is faster when it rounds float32."""
        if self.head.rows.is_cuda:
            return self
        above = None if self.above is None else cast(LevelNetwork, self.above.quantised(precision))
        return LevelNetwork(quantised(self.encoder, precision), self.head, 0.0, above, self.n_candidates)


@dataclass(frozen=True, eq=False)
class Levels:
    """The networks of a tree of labels, and how they are trained."""

    index: LabelIndex
    """One network per level, the labels included."""
    labelwise: LabelwiseOptions
    n_candidates: int
    """Clusters whose children are scored."""

    @property
    def n_levels(self) -> int:
        """Number of networks, trained one after the other."""
        return len(self.index.parents)

    def head(self, level: int, width: int) -> Labelwise:
        """Return the head of a level for states of a width."""
        if level == 0:
            return Labelwise(width, len(self.index.parents[0]), self.labelwise)
        clusters, children = self.index.parents[level - 1 : level + 1]
        return LabelwiseWithin(width, LabelIndex((np.zeros(len(clusters), np.int32), children)), self.labelwise)

    def fit(self, texts: TextReadings, labels: LabelMatrix, plan: NetworkPlan, run: Run | None = None) -> Tagger:
        """Train on texts and their labels, level by level, each as `plan` says; return the network of the labels."""
        run = run or Run()
        tagger: Tagger | None = None
        for level, targets in enumerate(self.index.targets(labels)):
            tagger = self.fit_level(level, tagger, texts, targets, plan, run=run.within(f"level-{level}"))
        if tagger is None:
            raise ValueError("an index must have a level")
        return tagger

    def fit_level(
        self,
        level: int,
        above: Tagger | None,
        texts: TextReadings,
        targets: LabelMatrix,
        plan: NetworkPlan,
        *,
        run: Run,
    ) -> Tagger:
        """Train one level on its own clusters (or labels); `above` is the network of the level before."""
        if above is None:
            head_of_level = partial(self.head, level)
            return Tagger.fit(texts, targets, plan, head_of_level, run=run, make_network=LevelNetwork)
        network_above, n = cast(LevelNetwork, above.network), self._n_candidates(level)

        def find_candidates() -> dict[str, NDArray[np.int32]]:
            kept, _ = split_rows(len(texts), plan.training, plan.seed)  # the trainer numbers these
            return {"clusters": above.top_k(texts, n, run).labels[kept]}

        candidates = run.stages.arrays("candidates", find_candidates)[0]["clusters"]

        def make_head(width: int) -> Head:
            head = cast(LabelwiseWithin, self.head(level, width))
            head.shared.load_state_dict(network_above.head.shared.state_dict())
            head.fix_candidates(candidates)
            return head

        def make_network(encoder: Encoder, head: Head, dropout: float) -> Network:
            return LevelNetwork(encoder, head, dropout, network_above, n)

        tagger = Tagger.fit(texts, targets, plan, make_head, run=run, start=above, make_network=make_network)
        tagger.facts["above"] = above.facts
        return tagger

    def estimate_resources(
        self,
        split: Split,
        plan: NetworkPlan,
        **keywords: Unpack[EstimateKeywords],
    ) -> ResourceEstimate:
        """Return what it takes to train all levels."""
        estimates = (
            estimate_network(
                split,
                [plan.encoder],
                partial(self._outline, level, plan.training.batch_size),
                plan.training,
                n_readings=float(level < self.n_levels - 1),  # for the candidates of the next level
                advice=_ADVICE,
                make_network=LevelNetwork,
                **keywords,
            )
            for level in range(self.n_levels)
        )
        return reduce(ResourceEstimate.then, estimates)

    def _outline(self, level: int, n_texts: int, width: int) -> Head:
        """Return the head of a level with arbitrary candidates for `n_texts` texts."""
        head = self.head(level, width)
        if isinstance(head, LabelwiseWithin):
            first = np.arange(n_texts)[:, None] + np.arange(self._n_candidates(level))
            head.fix_candidates(first % head.n_clusters)
        return head

    def load(self, folder: Folder, name: str) -> Tagger:
        """Open what `Tagger.save` wrote for the network of the labels."""
        return Tagger.load(folder, name, lambda width: self.head(self.n_levels - 1, width), self.networks())

    def networks(self) -> MakeNetwork:
        """Return what makes the network of the labels with all networks above."""

        def make(encoder: Encoder, head: Head, dropout: float) -> Network:
            above: LevelNetwork | None = None
            for level in range(self.n_levels - 1):
                other = copy.deepcopy(encoder, {id(encoder.tokeniser): encoder.tokeniser})
                above = LevelNetwork(other, self.head(level, encoder.width), 0.0, above, self._n_candidates(level))
            return LevelNetwork(encoder, head, dropout, above, self._n_candidates(self.n_levels - 1))

        return make

    def _n_candidates(self, level: int) -> int:
        """Return the number of clusters whose children a level scores."""
        return min(self.n_candidates, len(self.index.parents[level - 1])) if level else 1
