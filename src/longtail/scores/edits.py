"""Suggest labels as they are now: retired ones no longer, merged ones as the label that they were merged into.

    lists in the labels of the training  ->  lists in the labels of today; all other scores stay as they are

The step is saved with the chain of its model and holds the whole history, so a model tells what was changed, and every
change can be undone.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.labels.edits import EditedLabels, LabelEdit
from longtail.labels.model_labels import ModelLabels
from longtail.scores.step import NO_CURVE, STEPS, Curve, ScoreStep
from longtail.types import NO_LABEL, TopK


@STEPS.register("edits")
class Edits(ScoreStep):
    """Leaves out retired labels and shows merged ones as others."""

    kind: Literal["edits"] = "edits"
    history: tuple[LabelEdit, ...] = ()
    """All changes so far, the first one first."""

    @cached_property
    def labels(self) -> EditedLabels:
        """What the history comes to."""
        return EditedLabels.of(self.history)

    def n_candidates(self, k: int) -> int:
        """Return `k` and one more for each label that may be shown as another one of the list."""
        return k + len(self.labels.merged)

    def allowed(self, labels: ModelLabels) -> NDArray[np.bool_] | None:
        """Return which labels (n_labels,) were not retired; None if all are in use."""
        return self.labels.in_use(labels.vocabulary) if self.labels.retired else None

    def shown_as(self, labels: ModelLabels) -> NDArray[np.int32] | None:
        """Return the number that each label is shown as; None if all are shown as themselves."""
        return self.labels.shown_as(labels.vocabulary) if self.labels.merged else None

    def exported_curve(self) -> Curve:
        """Return no points: an export names labels as they are now. Raise if labels were added from examples."""
        added = [label for label, edit in self.labels.added.items() if edit.examples]
        if added:
            raise ConfigError(
                f"labels must be those that were trained for an export, but {len(added):,} were added from examples "
                f"(the first is '{added[0]}'); train the model again with them, or serve it with longtail serve instead"
            )
        return NO_CURVE

    def apply(self, lists: TopK, k: int, labels: ModelLabels) -> TopK:
        """Return the lists with merged labels as others; a label that is there twice keeps its better score."""
        shown = self.shown_as(labels)
        if shown is None:
            return lists.first(k)
        numbers = np.where(lists.labels == NO_LABEL, np.int32(NO_LABEL), shown[lists.labels])
        return _without_repeats(TopK(numbers, lists.scores), np.flatnonzero((numbers != lists.labels).any(1))).first(k)


def _without_repeats(lists: TopK, texts: NDArray[np.int64]) -> TopK:
    """Return the lists of which the given ones keep each label at its first place only."""
    labels, scores = lists.labels.copy(), lists.scores.copy()
    for text in texts:
        row = lists.labels[text]
        first = np.sort(np.unique(row, return_index=True)[1])
        first = first[row[first] != NO_LABEL]
        labels[text], scores[text] = NO_LABEL, -np.inf
        labels[text, : len(first)], scores[text, : len(first)] = row[first], lists.scores[text, first]
    return TopK(labels, scores)
