"""XR-Transformer: an encoder fine-tuned from coarse to fine label clusters, a linear tree on TF-IDF and its vectors.

Labels are clustered by the TF-IDF of their texts. One encoder learns the clusters level after level, each from
negatives that the level above recalls. Then labels are clustered again, by TF-IDF and text vectors side by side, and
linear classifiers on these recall and rank. An ensemble has one member for each encoder and seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Unpack

import numpy as np
from pydantic import Field, PositiveFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.labels.clusters import LabelInputs, Sources, cluster_labels
from longtail.labels.model_labels import with_seen_labels
from longtail.labels.tree import TreeOptions, even_index
from longtail.labels.vectors import VectorOptions
from longtail.linear.ranker import RankerOptions
from longtail.linear.resources import estimate_linear
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, TreeMember, fit_tree
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.members import FeatureEnsemble, MemberOptions
from longtail.nn.encoders.base import AnyEncoderOptions, EncoderOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.base import NoHead
from longtail.nn.resolutions import FineTuningOptions, Resolutions
from longtail.nn.resources import text_width
from longtail.nn.tagger import Tagger
from longtail.persist import Folder
from longtail.run.run import PRECISIONS, Run
from longtail.scores.display import Display
from longtail.scores.step import ScoreStep
from longtail.text.features import TextFeatures
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.text.joined import with_embeddings
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import XRTransformerKeywords


class XRTransformerOptions(MemberOptions):
    """Options of XR-Transformer."""

    encoders: tuple[AnyEncoderOptions, ...] = Field((TransformerOptions(),), min_length=1)
    """What reads the texts; one member each."""
    features: TfidfOptions = TITLE_AND_TEXT
    """Texts as TF-IDF, for clustering labels and for the linear classifiers."""
    vectors: VectorOptions = VectorOptions()
    """What labels are clustered by, both times."""
    tree: TreeOptions = TreeOptions(branching=16, max_leaf=16)
    """How labels are clustered for fine-tuning."""
    first_clusters: PositiveInt = 16
    """Levels of that tree with fewer clusters are left out."""
    fine_tuning: FineTuningOptions = FineTuningOptions()
    """How the encoder is trained on the levels of that tree."""
    embedding_weight: PositiveFloat = 1.0
    """Length of the text vector beside TF-IDF in what the linear classifiers read."""
    final_tree: TreeOptions = TreeOptions()
    """How labels are clustered for the linear classifiers."""
    matcher: SolverOptions = SolverOptions(threshold=0.01)
    """Classifiers of the clusters."""
    ranker: RankerOptions = RankerOptions(threshold=0.01)
    """Classifiers of the labels."""
    search: BeamOptions = BeamOptions()
    """How labels are searched."""


@METHODS.register("xr-transformer")
class XRTransformer(FeatureEnsemble[TreeMember]):
    """A transformer fine-tuned from coarse to fine clusters, and a linear tree on TF-IDF and its vectors."""

    options_class = XRTransformerOptions
    precisions = PRECISIONS
    keeps_texts_out = True
    trains_networks = True
    text_options = ("features", "encoders")

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[XRTransformerKeywords]) -> None: ...

    def _plans(self) -> Iterable[tuple[EncoderOptions, int]]:
        return product(self.options.encoders, self.options.seeds)

    def _fit_member(self, plan: tuple[EncoderOptions, int], split: Split, texts: TextReadings, run: Run) -> TreeMember:
        options: XRTransformerOptions = self.options
        encoder_options, seed = plan
        rows = texts.rows(self.features_, run)
        inputs = LabelInputs(rows, split, seed, run, Sources(self.features_.of_names))
        index = cluster_labels(inputs, options.vectors, options.tree)
        levels = Resolutions(index.below(options.first_clusters), options.fine_tuning)
        encoder = levels.fit(texts, split.labels, encoder_options, seed=seed, run=run)
        vectors = run.stages.arrays("vectors", lambda: {"vectors": encoder.vectors(texts, run)})[0]["vectors"]
        joined = with_embeddings(rows, np.asarray(vectors), options.embedding_weight)
        tree = self._fit_tree(joined, split, seed, run.within("final"))
        return self._member(encoder, tree)

    def _member(self, encoder: Tagger, tree: LinearTree) -> TreeMember:
        options: XRTransformerOptions = self.options
        weight = options.embedding_weight
        return TreeMember(tree, self.features_, options.search, encoder=encoder, vector_weight=weight)

    def _fit_tree(self, rows: Rows, split: Split, seed: int, run: Run) -> LinearTree:
        """Cluster the labels by these rows and train their classifiers."""
        options: XRTransformerOptions = self.options
        index = cluster_labels(LabelInputs(rows, split, seed, run), options.vectors, options.final_tree)
        matcher, ranker, search = options.matcher, options.ranker, options.search
        return fit_tree(rows, split.labels, index, matcher=matcher, ranker=ranker, search=search, seed=seed, run=run)

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        return (*super()._score_steps(), Display(power=self.options.search.label_power))

    def _open_member(self, plan: tuple[EncoderOptions, int], folder: Folder, name: str) -> TreeMember:
        encoder = Tagger.load(folder, name, lambda width: NoHead())
        n_columns = self.features_.n_features + encoder.network.encoder.width
        return self._member(
            encoder, LinearTree.load(folder, name, n_columns=n_columns, n_labels=len(self.scored_labels_))
        )

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` takes; the linear classifiers are timed without text vectors."""
        options: XRTransformerOptions = self.options
        index = even_index(split.labels.n_seen(), options.tree).below(options.first_clusters)
        encoders, n_seeds = options.encoders, options.n_seeds
        networks = Resolutions(index, options.fine_tuning).estimate_resources(
            split, encoders, n_seeds=n_seeds, measure=measure, threads=threads
        )

        def fit(part: Split) -> None:
            seen, run = with_seen_labels(part), Run.of(threads=threads)
            _, rows = TextFeatures.fit(seen, options.features, run)
            for _, seed in self._plans():
                self._fit_tree(rows, seen, seed, run)

        return networks.then(
            estimate_linear(
                split,
                options.features,
                options.ranker,
                len(encoders) * n_seeds,
                tree=options.final_tree,
                fit=fit if measure else None,
                n_more=text_width(split, encoders),
            )
        )
