"""Methods with several members: train them one after the other, combine their lists, save and open each.

    members [TopK (n_texts, length), ...]  ->  TopK (n_texts, k)

A member is whatever ranks labels by itself: a tree, a network, or a whole method. All members get the same
`TextReadings`, so texts that they read the same way are tokenised and vectorised once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Annotated, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PositiveInt

from longtail.data.dataset import Split
from longtail.errors import ConfigError
from longtail.explain.explanation import Explanation
from longtail.explain.words import TextWords
from longtail.labels.model_labels import ModelLabels
from longtail.methods.base import Method, MethodOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.scores.combine import CombineOptions, combine_growing
from longtail.text.features import TextFeatures
from longtail.text.readings import TextReadings
from longtail.types import TopK


class MemberOptions(MethodOptions):
    """Options of every method that may have several members."""

    n_seeds: Annotated[PositiveInt, Field(le=10_000)] = 1
    """Number of members that differ only in their seed, which is `seed`, `seed` + 1, …; with several encoders, recalls
    or label vectors, this many for each of them."""
    ensemble: CombineOptions = CombineOptions()
    """How the lists of the members are combined."""
    list_length: PositiveInt = 100
    """Labels in the list of each member before they are combined; for longer lists, further ones come behind them."""

    @property
    def seeds(self) -> range:
        """The seeds of members that differ only in their seed."""
        return range(self.seed, self.seed + self.n_seeds)


class Member(Protocol):
    """One of several models whose lists are combined."""

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text."""

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder, in files that begin with `name`."""

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of it."""


M = TypeVar("M", bound=Member)


class EnsembleMethod(Method, Generic[M]):
    """A method of one or several members; a subclass says what they are."""

    members_: list[M]

    @abstractmethod
    def _plans(self) -> Iterable[Any]:
        """Return what `_fit_member` and `_open_member` are given, one plan per member."""

    @abstractmethod
    def _fit_member(self, plan: Any, split: Split, texts: TextReadings, run: Run) -> M:
        """Train a member; its `run` has stages of its own."""

    @abstractmethod
    def _open_member(self, plan: Any, folder: Folder, name: str) -> M:
        """Open what `save` of a member wrote."""

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        """Make what all members share."""

    def _save_prepared(self, writer: FolderWriter) -> None:
        """Write what `_prepare` made."""

    def _open_prepared(self, folder: Folder) -> None:
        """Read what `_save_prepared` wrote."""

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        self._prepare(split, texts, run)
        self.members_ = [self._fit_member(plan, split, texts, run.within(name)) for name, plan in self._named_plans()]

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        return self._combined(self.members_, texts, k, run)

    def _combined(self, members: Sequence[M], texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the lists of these members as one."""
        if len(members) == 1:
            return members[0].top_k(texts, k, run)
        options: MemberOptions = self.options
        length = options.list_length
        while length < k:
            length *= 2
        lists = [member.top_k(texts, length, run) for member in members]
        return combine_growing(lists, k, options.list_length, options.ensemble)

    def _only_member(self) -> M:
        """Return the one member; raise if there are several."""
        if len(self.members_) > 1:
            raise ConfigError(
                f"a model must be one network to be exported to ONNX, but this model of method {self.name} has "
                f"{len(self.members_)} members; train it with `n_seeds=1` and one encoder"
            )
        return self.members_[0]

    def _save(self, writer: FolderWriter) -> None:
        self._save_prepared(writer)
        for member, (name, _) in zip(self.members_, self._named_plans(), strict=True):
            member.save(writer, name)

    def _open(self, folder: Folder) -> None:
        self._open_prepared(folder)
        self.members_ = [self._open_member(plan, folder, name) for name, plan in self._named_plans()]

    def describe(self) -> dict[str, Any]:
        """Return the facts of the members' networks."""
        return {"networks": [member.describe() for member in self.members_]}

    def _named_plans(self) -> Iterable[tuple[str, Any]]:
        return ((f"member-{number}", plan) for number, plan in enumerate(self._plans()))


class FeatureEnsemble(EnsembleMethod[M]):
    """A method whose members all read the same TF-IDF, which its options call `features`."""

    lists_come_from = "linear models that read TF-IDF"
    features_: TextFeatures

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.features_, _ = texts.fit_features(split, self.options.features, run)

    def _save_prepared(self, writer: FolderWriter) -> None:
        self.features_.save(writer, "features")

    def _open_prepared(self, folder: Folder) -> None:
        self.features_ = TextFeatures.load(folder, "features")

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        return None if self.features_.tfidf is None else texts.rows(self.features_, run).matrix()

    def describe(self) -> dict[str, Any]:
        """Return the number of features and the facts of the members."""
        return {"n_features": self.features_.n_features, **super().describe()}


class MethodOfMethods(Method):
    """A method whose members are whole methods of any kind, with the same labels."""

    lists_come_from = "several models"
    members_: list[Method]

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        # Vectors of names say least; models that were saved before these existed never had them.
        members = sorted(self.members_, key=lambda member: member.sees_all_labels)
        vectors = (member._text_vectors(texts, _run_for(member, run)) for member in members)
        return next((one for one in vectors if one is not None), None)

    def _lists(self, texts: TextReadings, length: int, run: Run) -> list[TopK]:
        """Return the lists of all members."""
        return [member.top_k(texts, length, run=_run_for(member, run)) for member in self.members_]

    def _save_members(self, writer: FolderWriter) -> None:
        """Write each member as a model inside the model."""
        for number, member in enumerate(self.members_):
            member._write(writer.within(f"member-{number}"))

    def _open_members(self, folder: Folder, untrained: Sequence[Method]) -> None:
        """Open what `_save_members` wrote; `untrained` are the members as the options say."""
        self.members_ = [type(one).open(folder.within(f"member-{number}")) for number, one in enumerate(untrained)]

    def _explained(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> list[Explanation]:
        """Return why each member gives the one text of `texts` a label, or does not."""
        return [member._explanation(texts, words, label, _run_for(member, run)) for member in self.members_]

    def _scored_labels(self, space: ModelLabels) -> NDArray[np.int32]:
        return np.unique(np.concatenate([member.scored_labels_ for member in self.members_]))

    def describe(self) -> dict[str, Any]:
        """Return the facts of all members: of their trees of labels (`members`) and of their networks."""
        facts = [member.describe() for member in self.members_]
        return {key: [one for each in facts for one in each.get(key, ())] for key in ("members", "networks")}


def _run_for(member: Method, run: Run) -> Run:
    """Return the run at a precision that the member can predict with."""
    return run if run.precision in member.precisions else replace(run, precision="auto")
