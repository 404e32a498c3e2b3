"""X-BERT: label clusters, a matcher that recalls some of them, a linear ranker of the labels inside, an ensemble.

The matcher is a transformer (X-BERT), a BiLSTM with self-attention (X-ttention), a CNN, a bag of words, or linear. The
ranker reads TF-IDF, by default with the matcher's text vector beside it (X-Transformer); or labels are ranked by their
TF-IDF similarity, untrained. Each member has its own label vectors, clusters, matcher and ranker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field, NonNegativeFloat, PositiveInt

from longtail.data.dataset import TEXT, Split
from longtail.ensemble import EnsembleOptions, combine
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions, build_tree
from longtail.labels.vectors import VectorOptions, label_vectors
from longtail.linear.layer import Layer
from longtail.linear.ranker import RankerOptions, ScoreOptions, fit_ranker, rank
from longtail.linear.recall import LinearRecall, LinearRecallOptions
from longtail.linear.similarity import similarity_ranker
from longtail.linear.tree import spread
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.nn.encoders.choice import AnyEncoderOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.recall import NeuralRecall, NeuralRecallOptions
from longtail.nn.sentences import Sentences
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.features import TextFeatures
from longtail.text.fields import FieldOptions, TfidfOptions
from longtail.types import TopK

_TITLE = FieldOptions(column="title", otherwise=TEXT, otherwise_words=30)
_RECALLS: dict[str, Any] = {"linear": LinearRecall}
"""Matchers that are no encoders."""


class XBERTOptions(MethodOptions):
    """Options of X-BERT."""

    recalls: tuple[Annotated[AnyEncoderOptions | LinearRecallOptions, Field(discriminator="kind")], ...] = Field(
        (TransformerOptions(),), min_length=1
    )
    """What recalls clusters; one member each."""
    matcher: NeuralRecallOptions = NeuralRecallOptions()
    """Head and training of neural matchers."""
    vectors: tuple[VectorOptions, ...] = Field((VectorOptions(),), min_length=1)
    """What labels are clustered by; one member each."""
    tree: TreeOptions = TreeOptions(n_levels=1)
    """How labels are clustered."""
    features: TfidfOptions = TfidfOptions(
        blocks=(
            FieldOptions(),
            _TITLE.model_copy(update={"words": (1, 2)}),
            _TITLE.model_copy(update={"words": None, "chars": (5, 5), "weight": 0.7}),
        )
    )
    """Texts as TF-IDF, for label vectors and for the ranker."""
    ranking: Literal["trained", "similarity"] = "trained"
    """Classifiers of the labels, or the similarity of text and label vector, which is not trained."""
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

    def _fit(self, split: Split, run: Run) -> None:
        options: XBERTOptions = self.options
        self.features_, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        self.recalls_: list[Any] = []
        self.rankers_: list[Layer] = []
        self.n_clusters_: list[int] = []
        sentences = Sentences(options.sentence_model, run=run)
        for number, (recall, vectors, seed) in enumerate(self._plans()):
            own = run.within(f"member-{number}")

            def points(vectors: VectorOptions = vectors, seed: int = seed) -> Any:
                embeddings = sentences.of_texts(split.texts) if "embedding" in vectors.kinds else None
                more = self.features_.of_names, run.engine, run.progress, sentences, embeddings
                return label_vectors(rows, split.labels, split.vocabulary, vectors, seed, *more)

            def grow(points: Any = points, seed: int = seed) -> dict[str, Any]:
                return build_tree(points(), options.tree, seed, None, run.engine, run.progress).arrays()

            index = LabelIndex.from_arrays(dict(own.stages.arrays("tree", grow)[0]))
            kind = _RECALLS.get(recall.kind, NeuralRecall)
            made = kind.fit(recall, options.matcher, split.texts, rows, split.labels, index, seed, own)
            self.recalls_.append(made)
            self.n_clusters_.append(index.n_clusters)
            if options.ranking == "similarity":
                self.rankers_.append(similarity_ranker(points(), index, run.progress))
                continue
            n_recalled = options.ranker.n_recalled_of(index.n_clusters)
            recalled = made.clusters(split.texts, rows, n_recalled, run)[0]
            joined = made.joined(split.texts, rows, options.embedding_weight, run)
            parts = options.ranker, seed, run.engine, run.progress, own.stages
            self.rankers_.append(fit_ranker(joined, split.labels, index, recalled, *parts))

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
        return spread(lists[0] if len(lists) == 1 else combine(lists, k, options.ensemble), options.score)

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
            kind = _RECALLS.get(recall.kind, NeuralRecall)
            name = f"member-{number}"
            self.recalls_.append(kind.load(folder, name, self.options.matcher, self.n_clusters_[number]))
            self.rankers_.append(Layer.from_arrays(folder.arrays(f"{name}-ranker")))

    def describe(self) -> dict[str, Any]:
        """See `Method.describe`."""
        return {"n_features": self.features_.n_features, "n_clusters": self.n_clusters_}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return tuple(dict.fromkeys(block.otherwise or block.column for block in self.options.features.blocks))

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """See `Method.optional_columns`."""
        found = dict.fromkeys(block.column for block in self.options.features.blocks if block.otherwise)
        return tuple(column for column in found if column not in self.columns)

    def needs(self, split: Split) -> Needs:
        """See `Method.needs`."""
        return Needs(1 << 30, 1 << 28, "matcher.training.micro_batch or recalls.*.tokens.max_tokens")

    def _plans(self) -> Iterator[tuple[Any, VectorOptions, int]]:
        for recall in self.options.recalls:
            for vectors in self.options.vectors:
                for more in range(self.options.n_seeds):
                    yield recall, vectors, self.options.seed + more
