"""The label space of a method: the labels that its model has, and which of them it sees and scores.

    labels of the data, then all others that are known  ->  `labels`: vocabulary, training texts, which are scored
    what `_top_k` returns, in numbers of the labels that the method saw  ->  positions in `vocabulary_`  ->  suggestions

Most methods can score only labels with training texts; they see these alone, numbered from 0 in the same order.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail.data.arrow import int_array
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError, ModelFormatError
from longtail.labels.edits import LabelEdit, check_history
from longtail.labels.model_labels import ModelLabels
from longtail.persist import Folder
from longtail.predictions import Predictions, Suggestion
from longtail.scores.chain import Chain
from longtail.types import NO_LABEL, TopK


class MethodLabels:
    """Mixin of a method with the labels of its model, once it is trained."""

    sees_all_labels: ClassVar[bool] = False
    """Whether `_fit` and `_top_k` number labels as `vocabulary_` does. By default they see only the labels that have
    training texts, numbered from 0 in the same order."""

    vocabulary_: Vocabulary
    train_counts_: NDArray[np.int64]  # (n_labels,) training texts of each label, or examples of an added one
    scored_labels_: NDArray[np.int32]  # (n_scored,) the labels that the method can score, ascending
    trained_vocabulary_: Vocabulary
    """The labels as they were when the model was trained; edits add others behind them."""
    facts_: dict[str, Any]
    chain_: Chain

    @property
    def labels(self) -> ModelLabels:
        """All labels of the model as they are now, and which of them can be suggested."""
        n_trained, n_texts = len(self.trained_vocabulary_), int(self.facts_["n_texts"])
        if len(self.vocabulary_) == n_trained:
            return ModelLabels(self.vocabulary_, self.train_counts_, self.scored_labels_, n_texts)
        suggested = (self.train_counts_[n_trained:] > 0) | self._suggests_by_name()
        added = np.flatnonzero(suggested) + n_trained
        scored = np.append(self.scored_labels_, added.astype(np.int32))
        return ModelLabels(self.vocabulary_, self.train_counts_, scored, n_texts)

    @property
    def label_history(self) -> tuple[LabelEdit, ...]:
        """All changes of labels since the model was trained, the first one first."""
        return self.chain_.edits.history

    def edit_labels(self, *edits: LabelEdit) -> None:
        """Change the labels of the model, one edit after the other; if one is refused, nothing changes.

        New texts are tagged with the labels as they are then. `LabelEditor` does the same to a saved model.
        """
        n_before = len(self.label_history)
        chain = self.chain_.with_edits(edits)
        check_history(chain.edits.history, self.trained_vocabulary_, n_before)
        for edit in edits:
            if edit.action == "add":
                self._check_new_label(edit)
        self._use_edits(chain)

    def _use_edits(self, chain: Chain) -> None:
        """Take the labels as they are after the edits of a chain."""
        added = [len(edit.examples) for edit in chain.edited.added.values()]
        trained = self.train_counts_[: len(self.trained_vocabulary_)]
        self.train_counts_ = np.append(trained, np.array(added, trained.dtype))
        self.chain_, self.vocabulary_ = chain, chain.edited.vocabulary(self.trained_vocabulary_)

    if TYPE_CHECKING:  # what the method itself has

        def _suggests_by_name(self) -> bool: ...
        def _check_new_label(self, edit: LabelEdit) -> None: ...

    def _apply_label_history(self, folder: Folder) -> None:
        """Use the labels as they were edited before the model was saved."""
        if self.label_history:
            try:
                check_history(self.label_history, self.trained_vocabulary_)
            except ConfigError as error:
                raise ModelFormatError(f"{folder.path}: changes of labels: {error}; copy the model again") from error
            self._use_edits(self.chain_)

    def _trained_labels(self) -> ModelLabels:
        """Return the labels as they were when the model was trained: what is saved, beside the edits."""
        n_train_texts = int(self.facts_["n_texts"])
        counts = self.train_counts_[: len(self.trained_vocabulary_)]
        return ModelLabels(self.trained_vocabulary_, counts, self.scored_labels_, n_train_texts)

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
        vocabulary = self.trained_vocabulary_
        return vocabulary if self.sees_all_labels else vocabulary.take(self.scored_labels_)

    def _in_vocabulary(self, lists: TopK) -> TopK:
        """Return the lists of `_top_k` as positions in `vocabulary_`."""
        if self.sees_all_labels:
            return lists
        labels = np.where(lists.labels == NO_LABEL, np.int32(NO_LABEL), self.scored_labels_[lists.labels])
        return TopK(labels, lists.scores)
