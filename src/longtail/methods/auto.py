"""Auto: look at data, machine and time, train the members that fit, and keep what is best on unseen texts.

    data, machine, budget  ->  Choice: members and why  ->  their stack  ->  the stack, or `linear` if that is no worse

`linear` is always trained. The stack's ranker and all members are compared on held-out training texts by nDCG@5, so the
outcome is never worse there than `linear`. Should training take longer than expected, it is stopped and `linear` alone
is trained in the time that was kept back for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from longtail.choice.budget import Budget, Clock
from longtail.choice.candidates import ANCHOR
from longtail.choice.choose import Choice, Wishes, choose
from longtail.choice.outcome import Outcome
from longtail.choice.schedule import N_FOLDS
from longtail.data.dataset import Split
from longtail.errors import DataError
from longtail.explain.attribution import Attribution
from longtail.explain.words import TextWords
from longtail.labels.model_labels import ModelLabels
from longtail.methods import create_method
from longtail.methods.base import METHODS, Method, MethodOptions, ResourceEstimate
from longtail.persist import Folder, FolderWriter
from longtail.run.log import LOG
from longtail.run.run import PRECISIONS, Run
from longtail.run.time_limit import OutOfTimeError, with_time_limit
from longtail.scores.step import ScoreStep
from longtail.scores.tail import Tail
from longtail.text.readings import TextReadings
from longtail.types import TopK

if TYPE_CHECKING:
    from longtail.methods.keywords import AutoKeywords

STACK = "stack"
_READERS = (ANCHOR, "knn", "lexical")
"""Methods that tell which columns of texts are read before the members are chosen."""


class AutoOptions(MethodOptions):
    """Options of auto."""

    budget: Budget = 600.0
    """How long training may take, planning included: 90s, 10m, 1h30m, or seconds, at least 60. `none` is no limit:
    then only the data decide, and time is not measured."""
    leave_out: tuple[str, ...] = ()
    """Methods that must not become members, such as lightxml."""
    encoder: str | None = None
    """What networks read texts with: a folder, or a name on the hub; by default an English one, for English texts."""
    fields: str | None = None
    """Fields of texts that all members read, such as title,text; by default what each reads by itself."""


@METHODS.register("auto")
class Auto(Method):
    """What suits data, machine and time: a stack of several methods, or `linear` where that is no worse.

    For example:

        model = longtail.Auto(budget="2m").fit(data.train)
        print(model.why())                                 what was chosen, and why
    """

    name = "auto"
    options_class = AutoOptions
    precisions = PRECISIONS
    reads_features = True
    sees_all_labels = True

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[AutoKeywords]) -> None: ...

    def why(self) -> str:
        """Return what was looked at, what was chosen and why, and what came out, in lines."""
        self._check_fitted()
        return "\n".join([*self.choice_.lines(), str(self.outcome_)])

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        clock = Clock(self.options.budget)
        self.choice_ = run.stages.keep("choice", lambda: self._choose(split, clock, run), Choice.write, Choice.load)[0]
        self.choice_.log()
        self.model_, outcome = self._train(split, texts, run, clock)
        self.outcome_ = outcome if clock.budget_s is None else outcome.model_copy(update={"took_s": clock.spent_s})
        LOG.info(str(self.outcome_))

    def _choose(self, split: Split, clock: Clock, run: Run) -> Choice:
        stack: Any = create_method(STACK, {} if find_spec("lightgbm") else {"ranker": {"kind": "logistic"}}).options
        wishes = Wishes(clock, self.options.leave_out, self.options.encoder)
        return choose(split, wishes, self._create, stack, run=run)

    def _create(self, name: str, options: Mapping[str, Any]) -> Method:
        """Return an untrained member, with the seed and the fields of texts that all members have."""
        common = {"seed": self.options.seed, "calibrate": False}
        return create_method(name, common, options, fields=self.options.fields)

    def _train(self, split: Split, texts: TextReadings, run: Run, clock: Clock) -> tuple[Method, Outcome]:
        """Train what was chosen; return the model that is kept, and why."""
        anchor, *others = self.choice_.members
        outcome = Outcome(model=anchor.method, why="nothing else was to be trained")
        if others:
            try:
                stack: Any = self._stack()._fit_split(split, texts, self._limited(run, clock))
                outcome = Outcome.compared(stack.held_out_.figures, STACK, [one.method for one in self.choice_.members])
                if outcome.model == STACK:
                    return stack, outcome
            except (OutOfTimeError, DataError) as error:
                run.stages.put("stopped", lambda writer: None)
                outcome = Outcome(model=anchor.method, why=f"the stack was given up: {error}")
        alone = self._create(anchor.method, {**anchor.options, "calibrate": self.options.calibrate})
        return alone._fit_split(split, texts, run.within("alone")), outcome

    def _stack(self) -> Method:
        members = [{"method": one.method, "options": one.options} for one in self.choice_.members]
        options = {"members": members, "ranker": {"kind": self.choice_.ranker}, "calibrate": self.options.calibrate}
        return self._create(STACK, {**options, "n_folds": N_FOLDS, "n_ranked_folds": self.choice_.n_ranked_folds})

    def _limited(self, run: Run, clock: Clock) -> Run:
        """Return the run of the stack: it ends in time for the anchor to be trained alone."""
        if run.stages.get("stopped") is not None:
            raise OutOfTimeError("it took too long before training was interrupted")
        return with_time_limit(run.within(STACK), clock.left_before(self._seconds_of_training(self.choice_.anchor_s)))

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        return self.model_._text_vectors(texts, run)

    def _unseen(self, split: Split, texts: TextReadings, run: Run) -> None:
        """Return None: the model that is kept was calibrated as it was trained."""

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        run = run if run.precision in self.model_.precisions else replace(run, precision="auto")
        return self.model_._in_vocabulary(self.model_._top_k(texts, k, run))

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        return self.model_._attribution(texts, words, label, run)

    def _scored_labels(self, space: ModelLabels) -> NDArray[np.int32]:
        return self.model_.scored_labels_

    def _score_steps(self) -> tuple[ScoreStep, ...]:
        steps = self.model_.chain_.steps
        return (*super()._score_steps(), *(step for step in steps if not isinstance(step, Tail)))

    def _save(self, writer: FolderWriter) -> None:
        self.model_._write(writer.within("model"))
        Choice.write(writer, self.choice_)
        writer.manifest["outcome"] = self.outcome_.plain()

    def _open(self, folder: Folder) -> None:
        inner = folder.within("model")
        self.model_ = METHODS.get(str(inner.manifest["method"])).open(inner)
        self.choice_, self.outcome_ = Choice.load(folder), Outcome.of(folder.manifest["outcome"])

    @classmethod
    def options_for_fields(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options with which every member reads these fields of texts."""
        create_method(ANCHOR, fields=fields)  # refuses what cannot be read
        return {"fields": fields}

    def _text_readers(self) -> list[Any]:
        """Return the methods that say which columns of texts they read."""
        return [self.model_] if hasattr(self, "model_") else [self._create(name, {}) for name in _READERS]

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what `linear` takes, which is always trained; with `measure` what the choice takes, and log it."""
        self._use_params()
        if not measure:
            return self._create(ANCHOR, {}).estimate_resources(split)
        choice = self._choose(split, Clock(self.options.budget), Run.of(None, threads))
        choice.log()
        return ResourceEstimate(choice.memory_bytes, choice.disk_bytes, "leave_out", seconds=choice.expected_s)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the model that was kept, and the choice."""
        return {**self.model_.describe(), "choice": self.why().splitlines()}
