"""The linear family: TF-IDF → label tree → linear matcher → linear ranker, one or several such members.

Parabel, Bonsai, DiSMEC and XR-Linear are settings of it (`longtail methods`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Unpack

from pydantic import Field

from longtail.data.dataset import Split
from longtail.explain.attribution import Attribution, mean_of
from longtail.explain.terms import term_shares
from longtail.explain.words import TextWords
from longtail.kernels.rows import Rows
from longtail.labels.clusters import ClusterShares, LabelInputs, Sources, cluster_labels
from longtail.labels.index import LabelIndex
from longtail.labels.tree import TreeOptions
from longtail.labels.vectors import VectorOptions
from longtail.linear.contributions import attribute_linear
from longtail.linear.ranker import RankerOptions
from longtail.linear.training import SolverOptions
from longtail.linear.tree import BeamOptions, LinearTree, TreeMember, fit_tree
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.members import FeatureEnsemble, MemberOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH
from longtail.scores.display import Display
from longtail.scores.step import ScoreStep
from longtail.text.fields import TITLE_AND_TEXT, TfidfOptions
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix, TopK

if TYPE_CHECKING:
    from longtail.methods.keywords import LinearKeywords


class LinearOptions(MemberOptions):
    """Options of the linear family."""

    features: TfidfOptions = TITLE_AND_TEXT
    """TF-IDF of all words, and of the title (or the first words) again as word pairs and character n-grams."""
    vectors: tuple[VectorOptions, ...] = Field((VectorOptions(),), min_length=1)
    """What labels are clustered by; one member for each."""
    tree: TreeOptions = TreeOptions(max_children=64)
    """How labels are grouped."""
    matcher: SolverOptions = SolverOptions()
    """Classifiers of the clusters."""
    ranker: RankerOptions = RankerOptions()
    """Classifiers of the labels."""
    search: BeamOptions = BeamOptions()
    """How labels are searched."""


@METHODS.register("linear")
class Linear(FeatureEnsemble[TreeMember]):
    """Linear recall and ranking on TF-IDF: trains in seconds to minutes on a plain CPU.

    For example:

        model = longtail.Linear().fit(["a red apple", "a grey stone"] * 3, [["fruit", "red"], ["rock"]] * 3)
        model.predict(["an apple"], k=1)[0][0].name        "fruit"
    """

    options_class = LinearOptions
    reads_features = True
    text_options = ("features",)

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[LinearKeywords]) -> None: ...

    def _plans(self) -> Iterable[tuple[VectorOptions, int]]:
        return product(self.options.vectors, self.options.seeds)

    def _fit_member(self, plan: tuple[VectorOptions, int], split: Split, texts: TextReadings, run: Run) -> TreeMember:
        options: LinearOptions = self.options
        vectors, seed = plan
        rows = texts.rows(self.features_, run)
        inputs = LabelInputs(rows, split, seed, run, Sources(self.features_.of_names))
        index = cluster_labels(inputs, vectors, options.tree)
        tree = self._fit_tree(rows, split.labels, index, seed, run)
        shares = ClusterShares.of(split.labels, index, vectors, seed)
        return TreeMember(tree, self.features_, options.search, shares=shares)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        row = texts.rows(self.features_, run)
        shares = term_shares(words, self.features_, row.indices)
        weight = self.options.search.cluster_weight
        trees = [attribute_linear(one.tree, row, shares, words, label, weight) for one in self.members_]
        return mean_of(trees, self.options.ensemble.weights)

    def _fit_tree(
        self, rows: Rows, labels: LabelMatrix, index: LabelIndex, seed: int, run: Run, *, share: float = 1.0
    ) -> LinearTree:
        """Train the classifiers of a tree on a share of the training texts."""
        options: LinearOptions = self.options
        matcher, ranker, search = options.matcher.for_share(share), options.ranker.for_share(share), options.search
        return fit_tree(rows, labels, index, matcher=matcher, ranker=ranker, search=search, seed=seed, run=run)

    def _ask_second_model(self, split: Split, texts: TextReadings, asked: TextReadings, share: float, run: Run) -> TopK:
        """Train the classifiers again, of the same features and clusters, and return the lists of other texts."""
        rows, members = texts.rows(self.features_, run), []
        for member, (name, (_, seed)) in zip(self.members_, self._named_plans(), strict=True):
            tree = self._fit_tree(rows, split.labels, member.tree.index, seed, run.within(name), share=share)
            members.append(replace(member, tree=tree))
        return self._combined(members, asked, LIST_LENGTH, run)

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        return (*super()._score_steps(), Display(power=self.options.search.label_power))

    def _save_prepared(self, writer: FolderWriter) -> None:
        super()._save_prepared(writer)
        writer.manifest["n_levels"] = [len(member.tree.layers) for member in self.members_]
        shares = {f"member-{number}": member.shares for number, member in enumerate(self.members_) if member.shares}
        writer.arrays("clusters", {name: share.texts_per_cluster for name, share in shares.items()})

    def _open_member(self, plan: tuple[VectorOptions, int], folder: Folder, name: str) -> TreeMember:
        vectors, seed = plan
        n_columns, n_labels = self.features_.n_features, len(self.scored_labels_)
        tree = LinearTree.load(folder, name, n_columns=n_columns, n_labels=n_labels)
        shares = ClusterShares.load(folder, name, vectors, seed, n_clusters=tree.layers[-1].n_clusters)
        return TreeMember(tree, self.features_, self.options.search, shares=shares)

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return the memory, disk and, with `measure`, the time that training on `split` takes."""
        from longtail.linear.resources import estimate_linear  # brings all of `neighbours`, which tagging needs not

        options: LinearOptions = self.options
        new, n_members = self._uncalibrated(), len(list(self._plans()))
        fit = (lambda part: new.fit(part, threads=threads)) if measure else None
        kept = [vectors.max_weights for vectors in options.vectors]
        needs = estimate_linear(
            split,
            options.features,
            options.ranker,
            n_members,
            tree=options.tree,
            fit=fit,
            max_weights=None if None in kept else max(n for n in kept if n),
        )
        return needs if needs.seconds is None else replace(needs, seconds=self._seconds_of_training(needs.seconds))

    def describe(self) -> dict[str, Any]:
        """Return the number of features and the facts of the members."""
        return {"n_features": self.features_.n_features, "members": [member.describe() for member in self.members_]}
