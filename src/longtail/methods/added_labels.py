"""Labels that are added to a trained model: what a method needs to suggest them from a few examples.

method, its training texts  ->  NewLabels: a step of the chain, learned once
method, example texts       ->  prototypes  ->  NewScores of other texts, in each call
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from longtail.data.dataset import Split
from longtail.errors import ConfigError
from longtail.labels.edits import LabelEdit
from longtail.run.run import Run
from longtail.scores.chain import Chain
from longtail.scores.new_labels import NewLabels, NewScores, cosine, learn_new_labels, prototype
from longtail.scores.step import ScoreStep
from longtail.text.readings import TextReadings


class AddedLabels:
    """Mixin of a method whose models suggest labels that were added after training."""

    name: ClassVar[str]
    options: Any
    chain_: Chain
    trained_vocabulary_: Any

    _prototypes: tuple[tuple[LabelEdit, ...], Any] = ((), None)
    """Prototypes of added labels, and the edits that they were made of."""

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        """Return a vector of length 1 for each text (n_texts, width), sparse or dense; None: the method has none."""
        return None

    def _learn_new_labels(self, split: Split, texts: TextReadings, chain: Chain, run: Run) -> tuple[ScoreStep, ...]:
        """Return the step that suggests added labels, if scores are calibrated and texts have vectors."""
        if chain.calibration is None or any(isinstance(step, NewLabels) for step in chain.steps):
            return ()
        if self._text_vectors(texts.take(np.arange(1)), run) is None:
            return ()
        step = learn_new_labels(split.labels, lambda rows: self._text_vectors(texts.take(rows), run), self.options.seed)
        return () if step is None else (step,)

    def _new_scores(self, texts: TextReadings, run: Run) -> NewScores | None:
        """Return how likely texts have each of the added labels that have examples; None if there are none."""
        steps = [step for step in self.chain_.steps if isinstance(step, NewLabels)]
        added = tuple(edit for edit in self.chain_.edited.added.values() if edit.examples)
        if not steps or not added:
            return None
        numbers = [number for number, edit in enumerate(self.chain_.edited.added.values()) if edit.examples]
        cosines = cosine(self._text_vectors(texts, run), self._prototypes_of(added, run))
        labels = np.array(numbers, np.int32) + np.int32(len(self.trained_vocabulary_))
        return NewScores(labels, steps[-1].probability(cosines))

    def _prototypes_of(self, added: tuple[LabelEdit, ...], run: Run) -> Any:
        """Return the prototype of each added label, (n, width); made again only when these labels have changed."""
        made_of, prototypes = self._prototypes
        if made_of != added:
            prototypes = np.vstack([prototype(self._text_vectors(_readings(edit), run)) for edit in added])
            self._prototypes = added, prototypes
        return prototypes

    def _check_new_label(self, edit: LabelEdit) -> None:
        """Raise if the model cannot suggest the label that an edit adds."""
        if edit.examples and not any(isinstance(step, NewLabels) for step in self.chain_.steps):
            raise ConfigError(
                f"this model ({self.name}) cannot learn labels from examples: that needs calibrated scores, learned by "
                "this version from at least two labels of three texts, and a method with text vectors (linear, knn, "
                "networks that score every label, stack); train it again, or add the label without examples"
            )


def _readings(edit: LabelEdit) -> TextReadings:
    fields = dict.fromkeys(field for example in edit.examples for field in example)
    columns = {field: pa.array([example.get(field, "") for example in edit.examples], pa.string()) for field in fields}
    return TextReadings(pa.table(columns))
