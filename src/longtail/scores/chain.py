"""The steps between a method's ranked lists and what a model returns, in the order in which they are done.

    texts  ->  method  ->  TopK (n_texts, n)  ->  step  ->  ...  ->  step  ->  TopK (n_texts, k)

A chain is saved with its model as plain data. What a call asks for (`tail_weight`, `threshold`, `allow`, `deny`) makes
a new chain for that call; the model's own chain never changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, Literal, Self

import numpy as np

from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.calibrate import Calibrate
from longtail.scores.filters import Ask, Filter, lists_of_allowed
from longtail.scores.step import STEPS, ScoreStep
from longtail.scores.tail import Tail
from longtail.scores.threshold import Threshold
from longtail.types import TopK


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
        threshold: float | Literal["auto"] | None = None,
        tail_weight: float | None = None,
        allow: Iterable[str] | None = None,
        deny: Iterable[str] | None = None,
    ) -> Chain:
        """Return this chain with what one call asks for.

        `tail_weight` replaces the weight of the `tail` step, filters come before all steps, a threshold after them;
        `auto` is the threshold that the `calibrate` step knows.
        """
        steps = self.steps
        if tail_weight is not None:
            steps = tuple(_weighted(step, tail_weight) for step in steps)
        if allow is not None or deny is not None:
            denied = _entries("deny", deny) or ()
            steps = (Filter.of({"allow": _entries("allow", allow), "deny": denied}), *steps)
        if threshold is not None:
            steps = (*steps, Threshold.of({"threshold": self.lowest_score(threshold)}))
        return Chain(steps)

    def lowest_score(self, threshold: float | Literal["auto"] | None) -> float | None:
        """Return a threshold as a number; `auto` is the one that the `calibrate` step knows."""
        if threshold != "auto":
            if not isinstance(threshold, Real | None):
                raise ConfigError(f"threshold must be a number or 'auto', got {threshold!r}")
            return None if threshold is None else float(threshold)
        thresholds = [step.f1_threshold for step in self.steps if isinstance(step, Calibrate)]
        if not thresholds:
            raise ConfigError("threshold 'auto' needs a model with calibrated scores, got one without; give a number")
        return thresholds[-1]

    def top_k(self, ask: Ask, k: int, labels: ModelLabels) -> TopK:
        """Return the best `k` labels of each text; `ask` gives the method's lists, in numbers of `labels`."""
        lengths = [k]
        for step in reversed(self.steps):
            lengths.append(step.n_candidates(lengths[-1]))
        n = lengths.pop()
        masks = [allowed for step in self.steps if (allowed := step.allowed(labels)) is not None]
        lists = lists_of_allowed(ask, n, reduce(np.logical_and, masks), labels.scored) if masks else ask(n)
        for step in self.steps:
            lists = step.apply(lists, lengths.pop(), labels)
        return lists


def _weighted(step: ScoreStep, tail_weight: float) -> ScoreStep:
    if not isinstance(step, Tail):
        return step
    return Tail.of({**step.plain(), "tail_weight": float(tail_weight)})


def _entries(option: str, labels: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the labels that a caller named, as plain data."""
    if isinstance(labels, str):
        raise ConfigError(f"`{option}` must be a list of labels, got the one text '{labels}'; put it into a list")
    return None if labels is None else tuple(labels)
