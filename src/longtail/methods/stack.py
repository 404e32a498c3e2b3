"""Stack: several methods propose labels, and a ranker that knows how right each of them is scores the candidates.

    members' lists  ->  their union: candidates  ->  features of each candidate  ->  ranker  ->  probability

The ranker learns from lists of texts that the members have not seen. Training texts are split into folds, copies of a
text into the same one; each member is trained without a fold and asked about it, for as many folds as the ranker learns
from. For use, the members are trained on everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from longtail.data.dataset import Split
from longtail.explain.attribution import Attribution, of_members
from longtail.explain.words import TextWords
from longtail.methods import create_method
from longtail.methods.base import METHODS, Method, MethodOptions, ResourceEstimate
from longtail.methods.members import MethodOfMethods
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import PRECISIONS, Run
from longtail.scores.step import ScoreStep
from longtail.stacking.candidate_ranker import CandidateRanker
from longtail.stacking.folds import folds_of, n_asked_folds, texts_of_folds
from longtail.stacking.held_out import HeldOut
from longtail.stacking.member_training import MemberTraining
from longtail.stacking.ranker import RankerOptions
from longtail.stacking.shares import member_shares
from longtail.stacking.trees import TreesOptions
from longtail.text.readings import TextReadings
from longtail.types import TopK

if TYPE_CHECKING:
    from longtail.methods.keywords import StackKeywords


class StackMember(Options):
    """A method that proposes labels; in a setting, its name alone will do."""

    method: str
    """A method (`linear`) or a preset of one (`linear/fast`)."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of it; its `seed` is that of the stack unless it is among them."""
    retrain: bool = True
    """Train it again on all texts for use. Without, the model that has not seen the first fold is used, which takes a
    network half the time; with `n_folds=10`, that one has seen nine tenths of the texts."""

    def create(self, seed: int) -> Method:
        """Return the untrained method."""
        return create_method(self.method, {"seed": seed, "calibrate": False}, self.options)


AnyMember = Annotated[StackMember, BeforeValidator(lambda m: {"method": m} if isinstance(m, str) else m)]


class StackOptions(MethodOptions):
    """Options of a stack."""

    members: tuple[AnyMember, ...] = Field((StackMember(method="linear"), StackMember(method="knn")), min_length=2)
    """What proposes labels: methods, presets, or the same method with several seeds."""
    list_length: PositiveInt = 40
    """Labels in the list of each member."""
    n_folds: int = Field(5, ge=2)
    """Parts that the training texts are split into."""
    n_ranked_folds: PositiveInt = 2
    """From the texts of how many folds the ranker learns, at most. Each costs one more training of every member."""
    max_ranked_texts: PositiveInt = 15_000
    """The ranker learns from at most this many texts; if fewer folds have them, the others are left out."""
    ranker: RankerOptions = TreesOptions()
    """What scores the candidates: `trees` (LightGBM) or `logistic`."""

    @model_validator(mode="after")
    def _folds_are_there(self) -> Self:
        if self.n_ranked_folds > self.n_folds:
            raise ValueError(f"n_ranked_folds must be at most n_folds, {self.n_folds}, got {self.n_ranked_folds}")
        return self


@METHODS.register("stack")
class Stack(MethodOfMethods):
    """Several methods, and a ranker that learns on held-out texts whom to trust with which label.

    For example:

        model = longtail.Stack(members=["linear", "knn"]).fit(data.train)
        model.predict(["a text editor"], threshold="auto")        labels that are rather right than wrong
    """

    name = "stack"
    options_class = StackOptions
    precisions = PRECISIONS
    reads_features = True
    sees_all_labels = True

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[StackKeywords]) -> None: ...

    def check(self, split: Split) -> None:
        """Raise if the members cannot be trained on `split`."""
        super().check(split)
        for member in self._untrained():
            member.check(split)

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        options: StackOptions = self.options
        folds = folds_of(split, options.n_folds, options.seed)
        rows = texts_of_folds(folds, options.n_ranked_folds, options.max_ranked_texts, options.seed)
        trainings = [self._training(number, split, texts, run) for number in range(len(options.members))]
        lists = [training.lists(folds, rows, options.list_length) for training in trainings]
        ranked = CandidateRanker.fit(lists, split, rows, folds, options.ranker, seed=options.seed, run=run)
        self.ranker_, self.calibration_, self.held_out_ = ranked
        self.members_ = [training.for_use(folds, rows) for training in trainings]

    def _training(self, number: int, split: Split, texts: TextReadings, run: Run) -> MemberTraining[Method]:
        """Return how a member is trained on texts of a split, and asked about them."""
        member, seed = self.options.members[number], self.options.seed

        def fit(rows: NDArray[np.int64], run: Run) -> Method:
            some = split if len(rows) == len(split) else split.take(rows)
            trained: Method = member.create(seed)._fit_split(some, texts.take(rows), run)
            return trained

        return MemberTraining(
            fit,
            ask=lambda model, rows, length, run: model.top_k(texts.take(rows), length, run=run),
            write=lambda writer, model: model._write(writer),
            read=METHODS.get(member.create(seed).name).open,
            again=member.retrain,
            run=run.within(f"member-{number}"),
        )

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        return self.ranker_.top_k(self._lists(texts, max(k, self.options.list_length), run), texts.table, k, run)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        members, length = [one.method for one in self.options.members], self.options.list_length
        shares = member_shares(self.ranker_, self._lists(texts, length, run), texts.table, label, run)
        return of_members(members, shares, self._explained(texts, words, label, run), words)

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        return (*super()._score_steps(), *([self.calibration_] if self.options.calibrate else []))

    def _save(self, writer: FolderWriter) -> None:
        self.ranker_.save(writer)
        self.held_out_.save(writer)
        self._save_members(writer)

    def _open(self, folder: Folder) -> None:
        self._open_members(folder, self._untrained())
        self.ranker_ = CandidateRanker.load(folder, self.options.ranker, self.vocabulary_, len(self.members_))
        self.held_out_ = HeldOut.load(folder, int(self.facts_["n_texts"]), len(self.vocabulary_))

    def _untrained(self) -> list[Method]:
        return [member.create(self.options.seed) for member in self.options.members]

    @classmethod
    def options_for_fields(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with which every member reads these fields of texts."""
        checked = StackOptions.of(options, source=cls.name)
        members = [
            {"method": one.method, "options": one.options | method.options_for_fields(fields, method.options.plain())}
            for one in checked.members
            for method in [one.create(checked.seed)]
        ]
        return {"members": members}

    def _text_readers(self) -> list[Any]:
        """Return the members, which say which columns of texts they read."""
        return list(getattr(self, "members_", None) or self._untrained())

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` takes: every member, once for use and once for each fold."""
        options, total = self.options, ResourceEstimate(0, 0, "")
        n_asked = n_asked_folds(len(split), options.n_folds, options.n_ranked_folds, options.max_ranked_texts)
        for member, untrained in zip(options.members, self._untrained(), strict=True):
            one = untrained.estimate_resources(split, measure, threads)
            n_trainings = member.retrain + n_asked * (1 - 1 / options.n_folds)
            total = total.then(one if one.seconds is None else replace(one, seconds=one.seconds * n_trainings))
        return total
