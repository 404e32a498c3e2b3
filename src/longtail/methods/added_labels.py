"""Labels that are added to a trained model: what a method needs to suggest them from a few examples.

method, its training texts  ->  NewLabels: a step of the chain, learned once
method, example texts       ->  prototypes  ->  NewScores of other texts, in each call
names of added labels       ->  NameTable   ->  the same, also of labels without examples
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import ConfigError
from longtail.explain.occlusion import occlusion
from longtail.explain.words import TextWords
from longtail.labels.edits import LabelEdit
from longtail.labels.name_matches import NameOptions, NameTable
from longtail.labels.new_names import NameOdds, learn_name_odds
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH
from longtail.scores.chain import Chain
from longtail.scores.new_labels import (
    NewLabels,
    NewScores,
    cosine,
    learn_new_labels,
    prototype,
    sigmoid,
    texts_to_ask,
)
from longtail.scores.step import ScoreStep
from longtail.text.readings import TextReadings
from longtail.topk import top_k_of_rows
from longtail.types import TopK

_TITLE = "title"


class AddedLabels:
    """Mixin of a method whose models suggest labels that were added after training."""

    name: ClassVar[str]
    options: Any
    chain_: Chain
    trained_vocabulary_: Any
    vocabulary_: Vocabulary
    columns: Any
    optional_columns: Any
    train_counts_: Any

    _prototypes: tuple[tuple[LabelEdit, ...], Any] = ((), None)
    """Prototypes of added labels, and the edits that they were made of."""
    _new_names: tuple[Any, NameTable | None] = (None, None)
    """The names of added labels, and the table that was made of them."""

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        """Return a vector of length 1 for each text (n_texts, width), sparse or dense; None: the method has none."""
        return None

    def _learn_new_labels(self, split: Split, texts: TextReadings, chain: Chain, run: Run) -> tuple[ScoreStep, ...]:
        """Return the step that suggests added labels, if scores are calibrated and texts have vectors or names."""
        if chain.calibration is None or any(isinstance(step, NewLabels) for step in chain.steps):
            return ()
        seed = self.options.seed
        names = self._learn_names(split, texts, seed)
        step = None
        if self._text_vectors(texts.take(np.arange(1)), run) is not None:
            step = learn_new_labels(split.labels, lambda rows: self._text_vectors(texts.take(rows), run), seed, names)
        if step is None and names is not None:
            step = NewLabels(names=names[0])
        return () if step is None else (step,)

    def _learn_names(self, split: Split, texts: TextReadings, seed: int) -> tuple[NameOdds, Any] | None:
        """Return how likely a label is whose name a text has, and the log odds of some training texts."""
        has_title = _TITLE in (*self.columns, *self.optional_columns)
        columns = tuple(name for name in self.columns if name != _TITLE) or self.columns
        if not set(columns) <= set(texts.table.column_names):
            return None  # features without texts
        reader = NameOptions(columns=columns, title=_TITLE if has_title else None)
        rows = texts_to_ask(len(split), seed)
        frequency = split.labels.texts_per_label()
        return learn_name_odds(split.vocabulary, split.labels.take(rows), frequency, texts.take(rows).table, reader)

    def _suggests_by_name(self) -> bool:
        """Whether labels that are added without examples are suggested where texts have their names."""
        return any(isinstance(step, NewLabels) and step.names is not None for step in self.chain_.steps)

    def _new_scores(self, texts: TextReadings, run: Run) -> NewScores | None:
        """Return how likely texts have each of the added labels; None if there are none that can be suggested."""
        steps = [step for step in self.chain_.steps if isinstance(step, NewLabels)]
        every = list(self.chain_.edited.added.values())
        if not steps or not every:
            return None
        step = steps[-1]
        first = np.int32(len(self.trained_vocabulary_))
        usable = [number for number, edit in enumerate(every) if edit.examples and step.cosines]
        added, numbers = tuple(every[number] for number in usable), np.array(usable, np.int32)
        probabilities = np.empty((len(texts), 0), np.float32)
        if added:
            probabilities = step.probability(cosine(self._text_vectors(texts, run), self._prototypes_of(added, run)))
        named = None
        if step.names is not None and any(map(str.isalpha, "".join(edit.name for edit in every))):
            table = self._name_table(step.names)
            matches = table.match(texts.table)
            odds, place = step.names.of_matches(matches, table), np.full(len(every), -1)
            place[numbers] = np.arange(len(numbers))
            text, column = matches.texts(), place[matches.labels]
            known = column >= 0
            pairs = text[known], column[known]
            probabilities[pairs] = step.with_name(probabilities[pairs], odds[known])
            ptr = np.append(0, np.cumsum(~known))[matches.indptr]
            new = first + matches.labels[~known]
            named = top_k_of_rows(ptr, new, sigmoid(odds[~known]), LIST_LENGTH)
        return NewScores(first + numbers, probabilities, named)

    def _name_table(self, odds: NameOdds) -> NameTable:
        """Return the table of the names of added labels as they are now; made again only when these have changed."""
        made_of, table = self._new_names
        if table is None or made_of != (self.vocabulary_, odds.reader):
            n_trained = len(self.trained_vocabulary_)
            added = self.vocabulary_.take(np.arange(n_trained, len(self.vocabulary_)))
            table = NameTable.of(added, odds.reader)
            self._new_names = (self.vocabulary_, odds.reader), table
        return table

    def _prototypes_of(self, added: tuple[LabelEdit, ...], run: Run) -> Any:
        """Return the prototype of each added label, (n, width); made again only when these labels have changed."""
        made_of, prototypes = self._prototypes
        if made_of != added:
            prototypes = np.vstack([prototype(self._text_vectors(_readings(edit), run)) for edit in added])
            self._prototypes = added, prototypes
        return prototypes

    def _words_of_added(self, words: TextWords, label: int, run: Run) -> NDArray[np.float64] | None:
        """Return what an added label loses without each word (n_words,); None for one that is never suggested."""
        is_suggested = self._suggests_by_name() or self.train_counts_[label] > 0
        if label < len(self.trained_vocabulary_) or not is_suggested:
            return None
        alone = np.arange(len(self.vocabulary_)) == label

        def ask(texts: TextReadings, n: int) -> TopK:
            scores, none = self._new_scores(texts, run), TopK.empty(len(texts), 0)
            return none if scores is None else scores.merged_into(none, 1, alone)

        return occlusion(words, label, 1, ask)

    def _check_new_label(self, edit: LabelEdit) -> None:
        """Raise if the model cannot suggest the label that an edit adds."""
        if edit.examples and not any(isinstance(step, NewLabels) and step.cosines for step in self.chain_.steps):
            raise ConfigError(
                f"this model ({self.name}) cannot learn labels from examples: that needs calibrated scores, learned by "
                "this version from at least two labels of three texts, and a method with text vectors (linear, knn, "
                "lexical, networks that score every label, stack); train it again, or add the label without examples"
            )


def _readings(edit: LabelEdit) -> TextReadings:
    fields = dict.fromkeys(field for example in edit.examples for field in example)
    columns = {field: pa.array([example.get(field, "") for example in edit.examples], pa.string()) for field in fields}
    return TextReadings(pa.table(columns))
