"""LightXML: one transformer that recalls label clusters and ranks the labels inside, trained together.

If there are few enough labels, every label is scored and there are no clusters (docs/methods/lightxml.md#few-labels).
Otherwise labels are clustered by their texts, and the network learns from the labels of the clusters it recalls itself:
negatives that grow harder as it learns. An ensemble has one member for each encoder and seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, NonNegativeInt, PositiveFloat, model_validator

from longtail.data.dataset import Split
from longtail.errors import ConfigError
from longtail.explain.attribution import Attribution
from longtail.explain.words import TextWords
from longtail.labels.clusters import LabelInputs, Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.resources import estimate_clustering
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.members import EnsembleMethod, MemberOptions
from longtail.nn.clustered import ClusteredTagger, load_index
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.gradients import mean_gradients
from longtail.nn.heads.shortlist import ShortlistOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.resources import estimate_network
from longtail.nn.staged import Negatives, Scoring
from longtail.nn.tagger import NetworkPlan, Tagger, rows_held_out
from longtail.nn.training.options import TrainingOptions
from longtail.options import Ablation
from longtail.persist import Folder
from longtail.run.run import PRECISIONS, Run
from longtail.scores.new_labels import of_unit_length
from longtail.text.fields import TfidfOptions
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import LightXMLKeywords


class LightXMLOptions(MemberOptions):
    """Options of LightXML."""

    encoders: tuple[TransformerOptions, ...] = Field((TransformerOptions(n_layers=5),), min_length=1)
    """What reads the texts; one member for each."""
    rate_factors: Ablation[tuple[PositiveFloat, ...]] = ()
    """What all learning rates are multiplied by, one number per encoder; by default 1."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector; the paper's is 0.5."""
    dense_up_to: NonNegativeInt = 50_000
    """Largest number of labels that are all scored; with more labels, they are clustered and a shortlist is ranked."""
    labels: LabelTableOptions = LabelTableOptions()
    """How the labels' weights are stored and trained."""
    shortlist: ShortlistOptions = ShortlistOptions()
    """How clusters are recalled and their labels ranked."""
    negatives: Ablation[Negatives] = "dynamic"
    """Where the ranker's negative labels come from, above `dense_up_to`. `dynamic` (the paper's): from the clusters
    that the recall finds at that step, while both learn. The others, for comparison, use fixed clusters, found by a
    recall that is trained first. `static` (BS): a second encoder, which begins with the weights of the recall's, learns
    to rank. `frozen` (S): one encoder, trained for recall only; the ranker alone learns in the second training."""
    features: TfidfOptions = TfidfOptions()
    """TF-IDF that labels are clustered by."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by."""
    tree: TreeOptions = TreeOptions(n_levels=1, max_leaf=100, fill=False)
    """How labels are clustered."""
    training: TrainingOptions = TrainingOptions(epochs=13.0, batch_size=64, rate=1e-4, head_rate=2e-3, clip_norm=1.0)
    """How the network is trained."""

    @model_validator(mode="after")
    def _every_encoder_has_a_factor(self) -> Self:
        n_factors, n_encoders = len(self.rate_factors), len(self.encoders)
        if n_factors not in (0, n_encoders):
            raise ValueError(f"rate_factors must be one number per encoder ({n_encoders}), or none, got {n_factors}")
        return self


@METHODS.register("lightxml")
class LightXML(EnsembleMethod[ClusteredTagger]):
    """A transformer with all labels, or a shortlist of them, on top; best on a GPU."""

    options_class = LightXMLOptions
    precisions = PRECISIONS
    keeps_texts_out = True
    trains_networks = True
    text_options = ("encoders",)

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[LightXMLKeywords]) -> None: ...

    def _plans(self) -> Iterable[NetworkPlan]:
        options: LightXMLOptions = self.options
        factors = options.rate_factors or (1.0,) * len(options.encoders)
        for (encoder, factor), seed in product(zip(options.encoders, factors, strict=True), options.seeds):
            yield NetworkPlan(encoder, options.training.with_rates(factor), options.dropout, seed)

    def _validation_rows(self, n_texts: int) -> NDArray[np.int64]:
        return rows_held_out(self._plans(), n_texts)

    def _fit_member(self, plan: NetworkPlan, split: Split, texts: TextReadings, run: Run) -> ClusteredTagger:
        index = self._cluster(plan.seed, split, texts, run)
        return ClusteredTagger(self._scoring(index, split.labels.n_labels).fit(texts, split.labels, plan, run), index)

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        return of_unit_length(self.members_[0].tagger.vectors(texts, run))

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        taggers = [member.tagger for member in self.members_]
        weights, why_not = mean_gradients(taggers, texts, words, label, run)
        if weights is None:
            return self._occlusion(words, label, run, note=why_not)
        return Attribution("integrated gradients", weights)

    def _cluster(self, seed: int, split: Split, texts: TextReadings, run: Run) -> LabelIndex | None:
        """Return the clusters of a member; None where every label is scored."""
        options: LightXMLOptions = self.options
        if split.labels.n_labels <= options.dense_up_to:
            return None
        features, rows = texts.fit_features(split, options.features, run)
        inputs = LabelInputs(rows, split, seed, run, Sources(features.of_names))
        return cluster_labels(inputs, options.vectors, options.tree)

    def _scoring(self, index: LabelIndex | None, n_labels: int) -> Scoring:
        options: LightXMLOptions = self.options
        return Scoring(n_labels, index, options.negatives, options.shortlist, options.labels)

    def _open_member(self, plan: NetworkPlan, folder: Folder, name: str) -> ClusteredTagger:
        index = load_index(folder, name, n_labels := len(self.scored_labels_))
        return ClusteredTagger(self._scoring(index, n_labels).load(folder, name), index)

    def check(self, split: Split) -> None:
        """Refuse data that cannot be trained on, and a choice of negatives where every label is scored."""
        super().check(split)
        kind, most, n_labels = self.options.negatives, self.options.dense_up_to, split.labels.n_seen()
        if kind != "dynamic" and n_labels <= most:
            raise ConfigError(
                f"negatives '{kind}' needs more than dense_up_to ({most:,}) labels, got {n_labels:,}, which are all "
                "scored; lower dense_up_to, or use negatives 'dynamic'"
            )

    def exported_network(self) -> Tagger:
        """Return the network of the only member."""
        return self._recordable(self._only_member().tagger)

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return the memory, disk and, with `measure`, the time that training on `split` takes."""
        options: LightXMLOptions = self.options
        n_labels = split.labels.n_seen()
        index = None if n_labels <= options.dense_up_to else even_index(n_labels, options.tree)
        scoring = self._scoring(index, n_labels)
        networks = estimate_network(
            split,
            options.encoders,
            scoring.head,
            options.training,
            n_seeds=options.n_seeds * scoring.n_trainings,
            measure=measure,
            threads=threads,
        )
        return networks if index is None else estimate_clustering(split, options.features).then(networks)
