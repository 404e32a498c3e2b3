"""What one call asks of a model: how long lists are, where they end, and which labels may be in them.

Call(k=5, threshold="auto")  ->  call.answer(chain, ask, labels)  ->  Answer: lists, predicted recall
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.labels.model_labels import ModelLabels
from longtail.scores.calibrate import LIST_LENGTH
from longtail.scores.chain import Chain
from longtail.scores.expected_recall import N_EXPECTED
from longtail.scores.filters import Ask
from longtail.scores.new_labels import NewScores
from longtail.scores.threshold import leave_out_low
from longtail.types import TopK


@dataclass(frozen=True)
class Answer:
    """The lists that a call asked for."""

    lists: TopK
    recall: NDArray[np.float64] | None = None
    """The predicted recall of each text, (n_texts,), if scores are calibrated and it was asked for."""


@dataclass(frozen=True)
class Call:
    """The arguments of `Method.top_k` that say which labels are suggested."""

    k: int = 5
    threshold: float | Literal["auto"] | None = None
    min_precision: float | None = None
    min_recall: float | None = None
    tail_weight: float | None = None
    allow: Iterable[str] | None = None
    deny: Iterable[str] | None = None

    def answer(
        self, chain: Chain, ask: Ask, labels: ModelLabels, *, new: NewScores | None = None, with_recall: bool = False
    ) -> Answer:
        """Return the lists that a model with this chain gives; `ask` and `new` are as in `Chain.top_k`."""
        if not isinstance(self.k, Integral) or self.k < 1:
            raise ConfigError(f"k must be a whole number of at least 1, got {self.k!r}")
        chain = chain.with_call(tail_weight=self.tail_weight, allow=self.allow, deny=self.deny)
        lowest = self._lowest_score(chain)
        most = max(len(labels.scored), 1)
        k = min(LIST_LENGTH if self._wants_set else int(self.k), most)
        expected = chain.calibration.recall if with_recall and chain.calibration is not None else None
        whole = chain.top_k(ask, k if expected is None else min(max(k, N_EXPECTED), most), labels, new)
        lists = whole.first(k) if lowest is None else leave_out_low(whole.first(k), lowest)
        return Answer(lists, None if expected is None else expected.in_lists(whole.scores, lists.scores))

    @property
    def _wants_set(self) -> bool:
        return self.min_precision is not None or self.min_recall is not None

    def _lowest_score(self, chain: Chain) -> float | None:
        """Return the lowest score that a label of the lists may have."""
        wanted = {name: getattr(self, name) for name in ("threshold", "min_precision", "min_recall")}
        names = [f"`{name}`" for name, value in wanted.items() if value is not None]
        if len(names) > 1:
            raise ConfigError(f"only one of `threshold`, `min_precision` and `min_recall` can be given, got {names}")
        if not self._wants_set:
            return chain.lowest_score(self.threshold)
        [(name, level)] = [(name, value) for name, value in wanted.items() if value is not None]
        if not 0 < level <= 1:
            raise ConfigError(f"`{name}` must be above 0 and at most 1, got {level}")
        sets = chain.calibrated(f"`{name}`", "give a `threshold`").sets
        return sets.threshold(min_precision=self.min_precision, min_recall=self.min_recall)
