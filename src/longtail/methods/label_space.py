"""The label space of a method: the labels that its model has, and which of them it sees and scores.

    labels of the data, then all others that are known  ->  `labels`: vocabulary, training texts, which are scored
    what `_top_k` returns, in numbers of the labels that the method saw  ->  positions in `vocabulary_`  ->  suggestions

Most methods can score only labels with training texts; they see these alone, numbered from 0 in the same order.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail.data.arrow import int_array
from longtail.data.vocabulary import Vocabulary
from longtail.labels.model_labels import ModelLabels
from longtail.predictions import Predictions, Suggestion
from longtail.types import NO_LABEL, TopK


class MethodLabels:
    """Mixin of a method with the labels of its model, once it is trained."""

    sees_all_labels: ClassVar[bool] = False
    """Whether `_fit` and `_top_k` number labels as `vocabulary_` does. By default they see only the labels that have
    training texts, numbered from 0 in the same order."""

    vocabulary_: Vocabulary
    train_counts_: NDArray[np.int64]  # (n_labels,) training texts of each label
    scored_labels_: NDArray[np.int32]  # (n_scored,) the labels that the method can score, ascending
    facts_: dict[str, Any]

    @property
    def labels(self) -> ModelLabels:
        """All labels of the model, and which of them it can score."""
        n_train_texts = int(self.facts_["n_texts"])
        return ModelLabels(self.vocabulary_, self.train_counts_, self.scored_labels_, n_train_texts)

    def suggestions(self, lists: TopK) -> Predictions:
        """Return the rows of a TopK with label ids and names."""
        filled = lists.labels != NO_LABEL
        # Only the labels at hand: a vocabulary of millions stays in Arrow.
        hits = self.vocabulary_.table.take(int_array(lists.labels[filled]))
        ids, names = hits["id"].to_pylist(), hits["name"].to_pylist()
        named = map(Suggestion, ids, names, lists.scores[filled].tolist())
        return Predictions(list(islice(named, n)) for n in np.count_nonzero(filled, axis=1).tolist())

    def _scored_labels(self, space: ModelLabels) -> NDArray[np.int32]:
        """Return the labels that the method, now trained, can score, ascending."""
        return np.arange(len(space.vocabulary), dtype=np.int32) if self.sees_all_labels else space.scored

    def _scored_vocabulary(self) -> Vocabulary:
        """Return the labels as `_fit` saw them, in its numbers."""
        return self.vocabulary_ if self.sees_all_labels else self.vocabulary_.take(self.scored_labels_)

    def _in_vocabulary(self, lists: TopK) -> TopK:
        """Return the lists of `_top_k` as positions in `vocabulary_`."""
        if self.sees_all_labels:
            return lists
        labels = np.where(lists.labels == NO_LABEL, np.int32(NO_LABEL), self.scored_labels_[lists.labels])
        return TopK(labels, lists.scores)
