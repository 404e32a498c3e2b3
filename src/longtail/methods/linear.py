"""The linear family: TF-IDF → label tree → linear matcher → linear ranker, one or several such members.

Parabel, Bonsai, DiSMEC and XR-Linear are settings of it (`longtail methods`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveInt

from longtail.data.dataset import Split
from longtail.ensemble import EnsembleOptions, combine
from longtail.labels.clusters import Sources, cluster_labels
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors import VectorOptions
from longtail.linear.needs import linear_needs
from longtail.linear.ranker import RankerOptions
from longtail.linear.training import SolverOptions
from longtail.linear.tree import LinearTree, SearchOptions, fit_tree, spread
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.features import TextFeatures
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.types import TopK


class LinearOptions(MethodOptions):
    """Options of the linear family."""

    features: TfidfOptions = TITLE_AND_TEXT
    """Texts as TF-IDF: all words, and the title (or the first words) once more as pairs of words and as letters."""
    vectors: tuple[VectorOptions, ...] = Field((VectorOptions(),), min_length=1)
    """What labels are clustered by; one member each."""
    tree: TreeOptions = TreeOptions()
    """How labels are grouped."""
    matcher: SolverOptions = SolverOptions()
    """Classifiers of the clusters."""
    ranker: RankerOptions = RankerOptions()
    """Classifiers of the labels."""
    search: SearchOptions = SearchOptions()
    """How labels are searched."""
    n_seeds: PositiveInt = 1
    """Members for each of `vectors`, with seeds from `seed` on."""
    ensemble: EnsembleOptions = EnsembleOptions()
    """How the members' lists are put together."""
    list_length: PositiveInt = 100
    """Labels a member's list has before members are put together."""


@METHODS.register("linear")
class Linear(Method):
    """Linear recall and ranking on TF-IDF: trains in seconds to minutes on a plain CPU."""

    name = "linear"
    options_class = LinearOptions
    reads_features = True

    def _fit(self, split: Split, run: Run) -> None:
        options: LinearOptions = self.options
        self.features_, rows = TextFeatures.fit(split, options.features, run.engine, run.progress, run.stages)
        self.members_: list[LinearTree] = []
        self.texts_per_cluster_: list[np.ndarray[Any, Any]] = []
        for number, (vectors, seed) in enumerate(self._plans()):
            own = run.within(f"member-{number}")
            index = cluster_labels(rows, split, vectors, options.tree, seed, own, Sources(self.features_.of_names))
            parts = options.matcher, options.ranker, options.search
            tree = fit_tree(rows, split.labels, index, *parts, seed, None, run.engine, run.progress, own.stages)
            self.members_.append(tree)
            self.texts_per_cluster_.append(split.labels.renumber(index.parents[-1], index.n_clusters).texts_per_label())

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        rows = self.features_.rows(texts, features, run.engine, run.progress)
        length = k if len(self.members_) == 1 else max(k, self.options.list_length)
        search = self.options.search
        lists = [member.predict(rows, length, search, run.engine, run.progress) for member in self.members_]
        return lists[0] if len(lists) == 1 else combine(lists, k, self.options.ensemble)

    def _shown(self, found: TopK) -> TopK:
        return spread(found, self.options.search)

    def _save(self, writer: FolderWriter) -> None:
        self.features_.save(writer, "features")
        writer.manifest["n_levels"] = [len(member.layers) for member in self.members_]
        for number, member in enumerate(self.members_):
            for level in range(len(member.layers)):
                writer.arrays(f"member-{number}-level-{level}", member.arrays(level))
        clusters = {f"member-{number}": texts for number, texts in enumerate(self.texts_per_cluster_)}
        writer.arrays("clusters", clusters)

    def _open(self, folder: Folder) -> None:
        self.features_ = TextFeatures.load(folder, "features")
        n_levels = folder.manifest["n_levels"]
        self.members_ = [
            LinearTree.from_arrays([folder.arrays(f"member-{number}-level-{level}") for level in range(n)])
            for number, n in enumerate(n_levels)
        ]
        clusters = folder.arrays("clusters")
        self.texts_per_cluster_ = [clusters[f"member-{number}"] for number in range(len(n_levels))]

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: each field like the first block of features."""
        return {"features": cls.options_class.of(options, source=cls.name).features.reading(fields)}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return tuple(self.options.features.columns)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """See `Method.optional_columns`."""
        return tuple(self.options.features.optional_columns)

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        options: LinearOptions = self.options
        new, n_members = self.from_options(options.plain()), len(list(self._plans()))
        fit = (lambda part: new.fit(part, threads=threads)) if measure else None
        return linear_needs(split, options.features, options.ranker, n_members, options.tree, fit)

    def describe(self) -> dict[str, Any]:
        """Features, weights, and texts per cluster by label vector (X-BERT's figure 1)."""
        members = [
            {
                "vectors": "+".join(vectors.kinds),
                "seed": seed,
                "n_weights": member.n_weights,
                "texts_per_cluster": texts,
            }
            for (vectors, seed), member, texts in zip(
                self._plans(), self.members_, self.texts_per_cluster_, strict=True
            )
        ]
        return {"n_features": self.features_.n_features, "members": members}

    def _plans(self) -> Iterator[tuple[VectorOptions, int]]:
        for vectors in self.options.vectors:
            for more in range(self.options.n_seeds):
                yield vectors, self.options.seed + more
