"""The trainings of one member of a stack: without each fold that the ranker learns from, and for use.

training.lists(folds, rows, length)  ->  TopK (n_rows, length): lists of texts that the member has not seen
training.for_use(folds, rows)        ->  the member, trained on all texts, or the one without the first fold
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.stacking.folds import Rows64, lists_of_unseen
from longtail.types import TopK

M = TypeVar("M")


@dataclass
class MemberTraining(Generic[M]):
    """One member, and how it is trained, asked and kept."""

    fit: Callable[[Rows64, Run], M]
    """Trains it on some texts, whose row numbers are ascending."""
    ask: Callable[[M, Rows64, int, Run], TopK]
    """Asks it for so many labels of each of some texts."""
    write: Callable[[FolderWriter, M], None]
    read: Callable[[Folder], M]
    again: bool
    """Whether it is trained on all texts for use."""
    run: Run
    _without_first: M | None = field(default=None, init=False)

    def lists(self, folds: Rows64, rows: Rows64, length: int) -> TopK:
        """Return lists of texts `rows`, each by a model that was trained without the text's fold."""
        first = _first(folds, rows)

        def train_and_ask(train: Rows64, asked: Rows64, run: Run) -> TopK:
            model = self._trained(train, run)
            if folds[asked[0]] == first and not self.again:
                self._without_first = model
            return self.ask(model, asked, length, run)

        return lists_of_unseen(train_and_ask, folds, rows, length, self.run)

    def for_use(self, folds: Rows64, rows: Rows64) -> M:
        """Return the trained member."""
        if self.again:
            return self.fit(np.arange(len(folds)), self.run)
        if self._without_first is None:  # the lists are from before training was interrupted
            first = _first(folds, rows)
            self._without_first = self._trained(np.flatnonzero(folds != first), self.run.within(f"fold-{first}"))
        return self._without_first

    def _trained(self, train: Rows64, run: Run) -> M:
        """Return a model of some texts; a stage of the run, where it may be the one that is used."""
        if self.again:
            return self.fit(train, run)
        return run.stages.keep("model", lambda: self.fit(train, run), self.write, self.read)[0]


def _first(folds: Rows64, rows: Rows64) -> int:
    return int(folds[rows].min())
