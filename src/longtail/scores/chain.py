"""The steps between a method's ranked lists and what a model returns, in the order in which they are done.

    texts  ->  method  ->  TopK (n_texts, n)  ->  step  ->  ...  ->  step  ->  TopK (n_texts, k)

A chain is saved with its model as plain data. What a call asks for (`tail_weight`, `allow`, `deny`) makes a new chain
for that call; the model's own chain never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.labels.edits import EditedLabels, LabelEdit
from longtail.labels.model_labels import ModelLabels
from longtail.scores.calibrate import Calibrate
from longtail.scores.edits import Edits
from longtail.scores.filters import Ask, Filter, lists_of_allowed
from longtail.scores.new_labels import NewLabels, NewScores
from longtail.scores.step import STEPS, ScoreStep
from longtail.scores.tail import Tail
from longtail.scores.threshold import Threshold
from longtail.types import TopK

_NO_EDITS = Edits()


@dataclass(frozen=True)
class Chain:
    """Score steps, first to last."""

    steps: tuple[ScoreStep, ...]

    @classmethod
    def of(cls, steps: Sequence[Mapping[str, Any]]) -> Self:
        """Return the chain that `plain` described."""
        return cls(tuple(STEPS.get(str(step["kind"])).of(step, source=f"score step {step['kind']}") for step in steps))

    def plain(self) -> list[dict[str, Any]]:
        """Return the steps as plain data: the kind and the options of each."""
        return [step.plain() for step in self.steps]

    def with_call(
        self,
        *,
        tail_weight: float | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
    ) -> Chain:
        """Return this chain with what one call asks for.

        `tail_weight` replaces the weight of the `tail` step; scores that are weighted in another way than in training
        are not calibrated. Filters come before all steps.
        """
        steps = self.steps
        if tail_weight is not None:
            steps = tuple(_weighted(step, tail_weight) for step in steps)
            if steps != self.steps:
                steps = tuple(step for step in steps if not isinstance(step, Calibrate | NewLabels))
        if allow is not None or deny is not None:
            denied = _entries("deny", deny) or ()
            steps = (Filter.of({"allow": _entries("allow", allow), "deny": denied}), *steps)
        return Chain(steps)

    @property
    def edits(self) -> Edits:
        """The step that shows labels as they are now; an empty one where nothing was changed."""
        return next((step for step in self.steps if isinstance(step, Edits)), _NO_EDITS)

    @property
    def edited(self) -> EditedLabels:
        """What all changes of labels come to."""
        return self.edits.labels

    def with_edits(self, more: Iterable[LabelEdit]) -> Chain:
        """Return the chain after further changes of the labels."""
        edits = Edits(history=(*self.edits.history, *more))
        return Chain((edits, *(step for step in self.steps if not isinstance(step, Edits))))

    @property
    def calibration(self) -> Calibrate | None:
        """The step that makes scores probabilities, if there is one."""
        steps = [step for step in self.steps if isinstance(step, Calibrate)]
        return steps[-1] if steps else None

    def lowest_score(self, threshold: float | Literal["auto"] | None) -> float | None:
        """Return a threshold as a number; `auto` is the one that the `calibrate` step knows."""
        if threshold != "auto":
            return None if threshold is None else Threshold.of({"threshold": threshold}).threshold
        return self.calibrated("threshold 'auto'", "give a number").f1_threshold

    def calibrated(self, what: str, instead: str) -> Calibrate:
        """Return the `calibrate` step, or raise: `what` needs it."""
        if self.calibration is None:
            raise ConfigError(
                f"{what} needs a model with calibrated scores, got one without; {instead}, or train it with calibrate "
                "on and enough texts"
            )
        return self.calibration

    def n_candidates(self, k: int) -> int:
        """Return how many labels per text the first step must be given so that the last one can return `k`."""
        return self._lengths(k)[0]

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return what the steps make of lists that are as long as `n_candidates(k)` says."""
        for step, length in zip(self.steps, self._lengths(k)[1:], strict=True):
            lists = step.apply(lists, length, labels)
        return lists

    def top_k(self, ask: Ask, k: int, labels: ModelLabels, new: NewScores | None = None) -> TopK:
        """Return the best `k` labels of each text.

        `ask` gives the method's lists, in numbers of `labels`; `new` are the scores of labels that were added since.
        """
        n, allowed = self.n_candidates(k), self._allowed(labels)
        lists = (
            ask(n) if allowed is None else lists_of_allowed(ask, n, self._may_become(allowed, labels), labels.scored)
        )
        for step, length in zip(self.steps, self._lengths(k)[1:], strict=True):
            lists = step.apply(lists, length, labels)
            if new is not None and isinstance(step, NewLabels):
                lists = new.merged_into(lists, length, allowed)
        return lists

    def _lengths(self, k: int) -> list[int]:
        """Return how many labels per text each step is given, and the last one returns."""
        lengths = [k]
        for step in reversed(self.steps):
            lengths.append(step.n_candidates(lengths[-1]))
        return lengths[::-1]

    def _allowed(self, labels: ModelLabels) -> NDArray[np.bool_] | None:
        """Return which labels (n_labels,) may be suggested; None if all may."""
        masks = [allowed for step in self.steps if (allowed := step.allowed(labels)) is not None]
        return reduce(np.logical_and, masks) if masks else None

    def _may_become(self, allowed: NDArray[np.bool_], labels: ModelLabels) -> NDArray[np.bool_]:
        """Return which labels of the method (n_labels,) are suggested as one that is allowed."""
        for step in self.steps:
            shown = step.shown_as(labels)
            allowed = allowed if shown is None else allowed[shown]
        return allowed


def _weighted(step: ScoreStep, tail_weight: float) -> ScoreStep:
    if not isinstance(step, Tail):
        return step
    return Tail.of({**step.plain(), "tail_weight": float(tail_weight)})


def _entries(option: str, labels: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the labels that a caller named, as plain data."""
    if isinstance(labels, str):
        raise ConfigError(f"`{option}` must be a list of labels, got the one text '{labels}'; put it into a list")
    return None if labels is None else tuple(labels)
