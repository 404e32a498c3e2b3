"""How long a method takes to train and to be asked, measured on samples of the texts.

Cost.measure(method, split, run)  ->  Cost: seconds of a training on all texts, seconds per text that is asked
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import log
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.run.progress import SILENT
from longtail.run.resources import ResourceEstimate
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.stacking.ranker import RankerOptions, fit_ranker
from longtail.stacking.trees import TreesOptions
from longtail.types import TopK

_SMALL, _LARGE = 500, 2000
"""Texts of the two samples that a method is trained on before it is asked."""
_ASKED = 200
"""Texts that it is asked about."""
_ROWS, _FEATURES = 20_000, 24
"""Candidates and features of the trials of a ranker."""
_FEW_TREES, _MORE_TREES = 10, 40
"""Trees of its two trials: what they share is spent once, however many trees there are."""


class Trainable(Protocol):
    """A method that is not trained yet, as its cost is measured."""

    def fit(self, texts: Split, *, run: Run | None = None) -> Any:
        """Train on a split."""

    def top_k(self, texts: Split, k: int, *, run: Run | None = None) -> TopK:
        """Return the k best labels of each text."""

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` takes."""


@dataclass(frozen=True)
class Cost:
    """What a member takes."""

    needs: ResourceEstimate
    """Of one training on all texts."""
    ask_s: float = 0.0
    """Seconds per text, when it is asked for a list."""

    @property
    def train_s(self) -> float:
        """Seconds of one training on all texts; 0 where time was not measured."""
        return self.needs.seconds or 0.0

    @classmethod
    def counted(cls, method: Trainable, split: Split) -> Self:
        """Return the memory of training without its time."""
        return cls(method.estimate_resources(split))

    @classmethod
    def measured(cls, method: Trainable, split: Split, run: Run, length: int, *, is_network: bool = False) -> Self:
        """Return the cost by training on samples; lists have `length` labels.

        A network is not trained twice: training reads every text at least once forwards and backwards, so being asked
        about a text takes less than training took for it.
        """
        needs = method.estimate_resources(split, measure=True, threads=run.engine.n_local_threads)
        if is_network:
            return cls(needs, (needs.seconds or 0.0) / len(split))
        quiet = Run(run.engine, SILENT)
        small, large = (_seconds_to_ask(method, split, n, length, quiet) for n in (_SMALL, _LARGE))
        n_large = min(_LARGE, len(split))
        # Lists of a larger model take longer: as its texts to a power, at most in proportion.
        growth = log(max(large / small, 1)) / log(_LARGE / _SMALL) if n_large == _LARGE else 0.0
        return cls(needs, large * max(len(split) / n_large, 1) ** min(growth, 1.0))


def _seconds_to_ask(method: Trainable, split: Split, n: int, length: int, run: Run) -> float:
    """Return the seconds per text, of a model of `n` texts."""
    method.fit(split.take(_evenly(len(split), n)), run=run)
    asked = split.take(_evenly(len(split), _ASKED))
    method.top_k(asked, length, run=run)  # loads kernels
    start = time.perf_counter()
    method.top_k(asked, length, run=run)
    return (time.perf_counter() - start) / len(asked)


def ranker_seconds(options: RankerOptions, run: Run) -> float:
    """Return the seconds per candidate of training a ranker, from a trial on numbers drawn by chance."""
    rng = np.random.default_rng(0)
    features = rng.random((_ROWS, _FEATURES), np.float32)
    right = features[:, :4].sum(axis=1) + rng.random(_ROWS) > np.float32(2.5)
    quiet = Run(run.engine, SILENT)
    examples = CandidateExamples(features, right, np.full(_ROWS // 50, 50))

    def seconds(trial: RankerOptions) -> float:
        start = time.perf_counter()
        fit_ranker(examples, trial, seed=0, run=quiet)
        return time.perf_counter() - start

    if not isinstance(options, TreesOptions):
        seconds(options)  # loads the library
        return seconds(options) / _ROWS
    trials = [options.model_copy(update={"n_trees": n}) for n in (_FEW_TREES, _MORE_TREES)]
    seconds(trials[0])
    few_s, more_s = map(seconds, trials)
    tree_s = max(more_s - few_s, 0.0) / (_MORE_TREES - _FEW_TREES)
    return (few_s + (options.n_trees - _FEW_TREES) * tree_s) / _ROWS


def _evenly(n: int, at_most: int) -> NDArray[np.int64]:
    """Return at most so many of `n` rows, spread evenly."""
    return np.linspace(0, n - 1, min(n, at_most)).astype(np.int64)
