"""X-BERT: label clusters, a matcher that recalls some of them, a linear ranker of the labels inside, an ensemble.

The matcher is a transformer (X-BERT), a BiLSTM with self-attention (X-ttention), a CNN, a bag of words, or linear. The
ranker reads TF-IDF, by default with the matcher's text vector beside it (X-Transformer); or labels are ranked by their
TF-IDF similarity, untrained. Each member has its own label vectors, clusters, matcher and ranker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Literal

import pyarrow as pa
from pydantic import Field, NonNegativeFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.ensemble import EnsembleOptions, combine
from longtail.labels.clusters import Sources, cluster_labels, points_of
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors import VectorOptions
from longtail.linear.layer import Layer
from longtail.linear.needs import linear_needs
from longtail.linear.ranker import RankerOptions, ScoreOptions, fit_ranker, rank
from longtail.linear.similarity import similarity_ranker
from longtail.linear.tree import spread
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.recall import AnyRecallOptions, NeuralRecallOptions, recall_needs, recall_of
from longtail.nn.sentences import Sentences
from longtail.persist import Folder, FolderWriter
from longtail.run import PRECISIONS, Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.types import TopK


class XBERTOptions(MethodOptions):
    """Options of X-BERT."""

    recalls: tuple[AnyRecallOptions, ...] = Field((TransformerOptions(),), min_length=1)
    """What recalls clusters; one member each."""
    matcher: NeuralRecallOptions = NeuralRecallOptions()
    """Head and training of neural matchers."""
    vectors: tuple[VectorOptions, ...] = Field((VectorOptions(),), min_length=1)
    """What labels are clustered by; one member each."""
    tree: TreeOptions = TreeOptions(n_levels=1)
    """How labels are clustered."""
    features: TfidfOptions = TITLE_AND_TEXT
    """Texts as TF-IDF, for label vectors and for the ranker."""
    ranking: Literal["trained", "similarity"] = "trained"
    """Classifiers of the labels, or the TF-IDF similarity of a text and the mean of a label's, which is not trained."""
    ranker: RankerOptions = RankerOptions(threshold=0.01)
    """Classifiers of the labels."""
    embedding_weight: NonNegativeFloat = 1.0
    """Length of the matcher's text vector beside TF-IDF in the ranker's features; 0 leaves it out."""
    n_clusters_ranked: PositiveInt = 50
    """Clusters whose labels are ranked."""
    score: ScoreOptions = ScoreOptions(cluster_weight=0.4, label_power=4)
    """How a label's score is made."""
    sentence_model: str = TransformerOptions().model
    """The encoder of label names and texts for `sentence` and `embedding` vectors."""
    n_seeds: PositiveInt = 1
    """Members for each of `recalls` and `vectors`, with seeds from `seed` on."""
    ensemble: EnsembleOptions = EnsembleOptions()
    """How the members' lists are put together."""
    list_length: PositiveInt = 20
    """Labels a member's list has before members are put together."""


@METHODS.register("xbert")
class XBERT(Method):
    """A neural matcher over label clusters and a linear ranker below it."""

    name = "xbert"
    options_class = XBERTOptions
    precisions = PRECISIONS

    def _fit(self, split: Split, run: Run) -> None:
        options: XBERTOptions = self.options
        self.features_, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        self.recalls_: list[Any] = []
        self.rankers_: list[Layer] = []
        self.n_clusters_: list[int] = []
        encoder = Sentences(options.sentence_model, run=run)
        sources = Sources(self.features_.of_names, encoder, encoder.of_texts)
        for number, (recall, vectors, seed) in enumerate(self._plans()):
            own = run.within(f"member-{number}")
            index = cluster_labels(rows, split, vectors, options.tree, seed, own, sources)
            made = recall_of(recall).fit(recall, options.matcher, split.texts, rows, split.labels, index, seed, own)
            self.recalls_.append(made)
            self.n_clusters_.append(index.n_clusters)
            if options.ranking == "similarity":
                pifa = points_of(rows, split, VectorOptions(), seed, run, sources)  # whatever labels are clustered by
                self.rankers_.append(similarity_ranker(pifa, index))
                continue
            hard, n_recalled = options.ranker.negatives == "matcher", options.ranker.n_recalled_of(index.n_clusters)
            recalled = made.clusters(split.texts, rows, n_recalled, run)[0] if hard else None
            joined = made.joined(split.texts, rows, options.embedding_weight, run)
            how = options.ranker, seed, run.engine, run.progress, own.stages
            self.rankers_.append(fit_ranker(joined, split.labels, index, recalled, *how))

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        options: XBERTOptions = self.options
        rows = self.features_.rows(texts, features, run.engine, run.progress)
        weight = options.embedding_weight if options.ranking == "trained" else 0.0
        length = k if len(self.recalls_) == 1 else max(k, options.list_length)
        lists = []
        for recall, ranker in zip(self.recalls_, self.rankers_, strict=True):
            clusters, logs = recall.clusters(texts, rows, options.n_clusters_ranked, run)
            joined = recall.joined(texts, rows, weight, run)
            lists.append(rank(ranker, joined, clusters, logs, length, options.score, run.engine, run.progress))
        return lists[0] if len(lists) == 1 else combine(lists, k, options.ensemble)

    def _shown(self, found: TopK) -> TopK:
        return spread(found, self.options.score)

    def _save(self, writer: FolderWriter) -> None:
        self.features_.save(writer, "features")
        writer.manifest["n_clusters"] = self.n_clusters_
        for number, (recall, ranker) in enumerate(zip(self.recalls_, self.rankers_, strict=True)):
            recall.save(writer, f"member-{number}")
            writer.arrays(f"member-{number}-ranker", ranker.arrays())

    def _open(self, folder: Folder) -> None:
        self.features_ = TextFeatures.load(folder, "features")
        self.n_clusters_ = folder.manifest["n_clusters"]
        self.recalls_, self.rankers_ = [], []
        for number, (recall, _, _) in enumerate(self._plans()):
            parts = folder, f"member-{number}", self.options.matcher, self.n_clusters_[number]
            self.recalls_.append(recall_of(recall).load(*parts))
            self.rankers_.append(Layer.from_arrays(folder.arrays(f"member-{number}-ranker")))

    def describe(self) -> dict[str, Any]:
        """See `Method.describe`."""
        return {"n_features": self.features_.n_features, "networks": [recall.facts() for recall in self.recalls_]}

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: features field by field, encoders one field after the other."""
        given = cls.options_class.of(options, source=cls.name)
        recalls = [recall.reading(fields) for recall in given.recalls]
        return {"features": given.features.reading(fields), "recalls": recalls}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return tuple(self.options.features.columns)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """See `Method.optional_columns`."""
        return tuple(self.options.features.optional_columns)

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`; the ranker's time is that with linear matchers."""
        options: XBERTOptions = self.options
        n_times = len(options.vectors) * options.n_seeds
        parts = options.recalls, options.matcher, options.tree, n_times
        networks, width = recall_needs(split, *parts, measure, threads)
        quick = self.from_options(options.plain() | {"recalls": [{"kind": "linear"}] * len(options.recalls)})
        fit = (lambda part: quick.fit(part, threads=threads)) if measure else None
        given = options.features, options.ranker, n_times * len(options.recalls), options.tree, fit
        return networks.then(linear_needs(split, *given, width if options.embedding_weight else 0))

    def _plans(self) -> Iterable[tuple[Any, VectorOptions, int]]:
        seeds = range(self.options.seed, self.options.seed + self.options.n_seeds)
        return product(self.options.recalls, self.options.vectors, seeds)
