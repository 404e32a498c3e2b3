"""X-BERT: a matcher recalls label clusters, a linear ranker ranks the labels inside; several members vote.

The matcher is a transformer (X-BERT), a BiLSTM with self-attention (X-ttention), a CNN, a bag of words, or linear. The
ranker reads TF-IDF, by default with the matcher's text vector beside it (X-Transformer). Alternatively labels are
ranked by TF-IDF similarity, without training. Each member has its own label vectors, clusters, matcher and ranker.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from pydantic import Field, NonNegativeFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.labels.clusters import ClusterShares, LabelInputs, Sources, cluster_labels
from longtail.labels.recall import Recall
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors import VectorOptions, label_vectors
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, ScoreOptions, fit_ranker
from longtail.linear.recall import RecallAndRank
from longtail.linear.resources import estimate_linear
from longtail.linear.similarity import similarity_ranker
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.members import FeatureEnsemble, MemberOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.recall import AnyRecallOptions, Matcher, NeuralRecallOptions, estimate_recall
from longtail.nn.sentences import SentenceEncoder
from longtail.persist import Folder, FolderWriter
from longtail.run.run import PRECISIONS, Run
from longtail.scores.display import Display
from longtail.scores.step import ScoreStep
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import XBERTKeywords


class XBERTOptions(MemberOptions):
    """Options of X-BERT."""

    recalls: tuple[AnyRecallOptions, ...] = Field((TransformerOptions(),), min_length=1)
    """What recalls clusters; one member for each."""
    matcher: NeuralRecallOptions = NeuralRecallOptions()
    """Head and training of neural matchers."""
    vectors: tuple[VectorOptions, ...] = Field((VectorOptions(),), min_length=1)
    """What labels are clustered by; one member for each."""
    tree: TreeOptions = TreeOptions(n_levels=1)
    """How labels are clustered."""
    features: TfidfOptions = TITLE_AND_TEXT
    """TF-IDF of the texts, for label vectors and for the ranker."""
    ranking: Literal["trained", "similarity"] = "trained"
    """`trained`: one classifier per label. `similarity`: TF-IDF similarity of a text to the mean of a label's."""
    ranker: RankerOptions = RankerOptions(threshold=0.01)
    """Classifiers of the labels."""
    embedding_weight: NonNegativeFloat = 1.0
    """Length of the matcher's text vector beside TF-IDF in the ranker's features; 0 leaves it out."""
    n_clusters_ranked: PositiveInt = 50
    """Clusters whose labels are ranked."""
    score: ScoreOptions = ScoreOptions(cluster_weight=0.4, label_power=4)
    """How the score of a label is computed."""
    sentence_model: str = TransformerOptions().model
    """Encoder of label names and texts for `sentence` and `embedding` vectors."""
    list_length: PositiveInt = 20
    """Labels in the list of each member before they are combined; at least k."""


class MemberPlan(NamedTuple):
    """What a member is trained with."""

    recall: AnyRecallOptions
    vectors: VectorOptions
    seed: int


@METHODS.register("xbert")
class XBERT(FeatureEnsemble[RecallAndRank]):
    """A neural matcher over label clusters and a linear ranker below it."""

    options_class = XBERTOptions
    precisions = PRECISIONS
    keeps_texts_out = trains_networks = True
    text_options = ("features", "recalls")

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[XBERTKeywords]) -> None: ...

    def _plans(self) -> Iterable[MemberPlan]:
        return map(MemberPlan._make, product(self.options.recalls, self.options.vectors, self.options.seeds))

    def _fit_member(self, plan: MemberPlan, split: Split, texts: TextReadings, run: Run) -> RecallAndRank:
        options: XBERTOptions = self.options
        rows, seed = texts.rows(self.features_, run), plan.seed
        encoder = texts.once("sentence encoder", lambda: SentenceEncoder(options.sentence_model, run=run))
        sources = Sources(self.features_.of_names, encoder, encoder.of_texts)
        inputs = LabelInputs(rows, split, seed, run, sources)
        index = cluster_labels(inputs, plan.vectors, options.tree)
        shares = ClusterShares.of(split.labels, index, plan.vectors, seed)
        matcher = Matcher(plan.recall, options.matcher)
        recall = matcher.fit(texts, rows, split.labels, index, seed=seed, run=run)
        if options.ranking == "similarity":  # to the mean TF-IDF of a label's texts, whatever labels are clustered by
            return self._member(recall, similarity_ranker(label_vectors(inputs, VectorOptions()), index), shares)
        hard, joined, clusters = options.ranker.negatives == "matcher", rows, None
        if hard or options.embedding_weight:
            n_recalled = options.ranker.n_recalled_of(index.n_clusters, split.labels)
            recalled = recall.read(texts, rows, n_recalled, run, vectors=options.embedding_weight > 0)
            joined, clusters = recalled.joined(rows, options.embedding_weight), recalled.clusters if hard else None
        ranker = fit_ranker(joined, split.labels, index, clusters, options.ranker, seed=seed, run=run)
        return self._member(recall, ranker, shares)

    def _member(self, recall: Recall, ranker: Layer, shares: ClusterShares | None) -> RecallAndRank:
        options: XBERTOptions = self.options
        weight = self._vector_weight
        return RecallAndRank(recall, ranker, self.features_, options.n_clusters_ranked, weight, options.score, shares)

    @property
    def _vector_weight(self) -> float:
        return self.options.embedding_weight if self.options.ranking == "trained" else 0.0

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        return (*super()._score_steps(), Display(power=self.options.score.power))

    def _save_prepared(self, writer: FolderWriter) -> None:
        super()._save_prepared(writer)
        writer.manifest["n_clusters"] = [member.ranker.n_clusters for member in self.members_]
        shares = {f"member-{number}": member.shares for number, member in enumerate(self.members_) if member.shares}
        writer.arrays("clusters", {name: share.texts_per_cluster for name, share in shares.items()})

    def _open_member(self, plan: MemberPlan, folder: Folder, name: str) -> RecallAndRank:
        # The matcher needs the number of clusters, which the ranker has, and the ranker the width of its vectors.
        n_clusters, n_columns = len(folder.arrays(f"{name}-ranker")["child_ptr"]) - 1, self.features_.n_features
        matcher = Matcher(plan.recall, self.options.matcher)
        recall = matcher.load(folder, name, n_columns=n_columns, n_clusters=n_clusters)
        n_columns += recall.width if self._vector_weight else 0
        n_labels = len(self.scored_labels_)
        ranker = Layer.load(folder, f"{name}-ranker", n_columns=n_columns, n_above=n_clusters, n_children=n_labels)
        # Models of older versions have none.
        has_shares = "clusters.safetensors" in folder and name in folder.arrays("clusters")
        shares = (
            ClusterShares.load(folder, name, plan.vectors, plan.seed, n_clusters=n_clusters) if has_shares else None
        )
        return self._member(recall, ranker, shares)

    def describe(self) -> dict[str, Any]:
        """Return the number of features and the facts of matchers and clusters."""
        members = [described for member in self.members_ for described in member.describe_clusters()]
        return {"n_features": self.features_.n_features, "members": members, **super().describe()}

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` takes; the ranker's time is measured with linear matchers."""
        options: XBERTOptions = self.options
        n_times = len(options.vectors) * options.n_seeds
        recalls, matcher, tree = options.recalls, options.matcher, options.tree
        networks, width = estimate_recall(
            split, recalls, matcher, tree, n_times=n_times, measure=measure, threads=threads
        )
        quick = self.from_options(
            options.plain() | {"recalls": [{"kind": "linear"}] * len(options.recalls), "calibrate": False}
        )
        fit = (lambda part: quick.fit(part, threads=threads)) if measure else None
        n_members, width = n_times * len(options.recalls), width if options.embedding_weight else 0
        return networks.then(
            estimate_linear(
                split, options.features, options.ranker, n_members, tree=options.tree, fit=fit, n_more=width
            )
        )
