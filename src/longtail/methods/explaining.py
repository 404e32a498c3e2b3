"""`explain` for every method: find the label, let the method weigh the words of the text, and say it in one form.

    model.explain(text, label)  ->  Explanation

A method that knows better than leaving words out one by one implements `_attribute`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import TEXT, as_table
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.explain.attribution import Attribution
from longtail.explain.examples import ExampleTexts
from longtail.explain.explanation import Explanation
from longtail.explain.occlusion import LIST_LENGTH, occlusion
from longtail.explain.words import TextWords
from longtail.run.progress import SILENT, Progress
from longtail.run.run import Run
from longtail.scores.filters import label_number
from longtail.text.readings import TextReadings
from longtail.types import TopK

NOT_SCORED = "The method cannot score this label: it has no training texts."
NOT_PROPOSED = "The method does not propose this label for the text, so no word of it counts."


class Explaining:
    """Mixin that explains why a trained method gives a label to a text."""

    name: ClassVar[str]
    sees_all_labels: ClassVar[bool]
    vocabulary_: Vocabulary
    scored_labels_: NDArray[np.int32]

    if TYPE_CHECKING:
        columns: Any
        optional_columns: Any
        top_k: Any

        def _check_fitted(self) -> None: ...
        def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK: ...
        def _words_of_added(self, words: TextWords, label: int, run: Run) -> NDArray[np.float64] | None: ...

    def explain(
        self,
        text: str | Mapping[str, str],
        label: str,
        *,
        examples: ExampleTexts | None = None,
        n_examples: int = 3,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> Explanation:
        """Return why a text has a label, or has it not: which words speak for it, and the nearest training texts.

        Args:
            text: A text, or its fields by name (`title`, `text`).
            label: The label's id or its name.
            examples: Training texts, of which the nearest with this label are shown (`ExampleTexts.of(data.train)`).
                Without them only methods that keep their training texts show some, by number.
            n_examples: How many training texts are shown at most.
            run: How the work is done; `threads` and `progress` are shorthands for its parts.
            threads: The number of threads.
            progress: Who is told how far it is.
        """
        self._check_fitted()
        number = label_number(self.vocabulary_, label)
        fields = {TEXT: text} if isinstance(text, str) else dict(text)
        readings = TextReadings(as_table([fields]))
        words = TextWords.of(self._fields_read(readings))
        explanation = self._explanation(readings, words, number, Run.of(run, threads, progress))
        if examples is None:
            return replace(explanation, nearest=explanation.nearest[:n_examples])
        return explanation.beside(examples, n_examples)

    def _explanation(self, texts: TextReadings, words: TextWords, number: int, run: Run) -> Explanation:
        """Return why the one text of `texts` has a label, in numbers of `vocabulary_`."""
        lists = self.top_k(texts, min(LIST_LENGTH, len(self.scored_labels_)), run=run)
        scores = lists.scores[lists.labels == number]
        attribution = self._attribution(texts, words, number, run)
        weights = attribution.weights
        note = attribution.note or ("" if weights.any() or len(scores) else NOT_PROPOSED)
        row = self.vocabulary_.table.slice(number, 1)
        return Explanation(
            label=row["id"][0].as_py(),
            name=row["name"][0].as_py(),
            score=float(scores[0]) if len(scores) else None,
            method=attribution.method,
            fields=dict(words.fields),
            words=words.weighted(weights),
            note=note,
            levels=attribution.levels,
            names=attribution.names,
            members=attribution.members,
            nearest=attribution.nearest,
        )

    def _attribution(self, texts: TextReadings, words: TextWords, number: int, run: Run) -> Attribution:
        """Return how much each word speaks for a label, in numbers of `vocabulary_`."""
        if number not in self.scored_labels_:
            weights = self._words_of_added(words, number, run)
            note = NOT_SCORED if weights is None else ""
            return Attribution("occlusion", np.zeros(len(words)) if weights is None else weights, note=note)
        label = number if self.sees_all_labels else int(np.searchsorted(self.scored_labels_, number))
        return self._attribute(texts, words, label, run)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        """Return how much each word of the one text of `texts` speaks for a label, in the numbers of `_top_k`.

        By default words are left out one by one.
        """
        return self._occlusion(words, label, run)

    def _occlusion(self, words: TextWords, label: int, run: Run, *, note: str = "", **limits: Any) -> Attribution:
        """Return what the label's score loses without each word; `limits` are those of `occlusion`."""
        n_labels = len(self.vocabulary_ if self.sees_all_labels else self.scored_labels_)
        weights = occlusion(words, label, n_labels, lambda texts, n: self._top_k(texts, n, run), **limits)
        return Attribution("occlusion", weights, note)

    def _fields_read(self, texts: TextReadings) -> dict[str, str]:
        """Return the fields of one text that the method reads, and the main one."""
        read = {*self.columns, *self.optional_columns, TEXT}
        fields = {name: str(texts.table[name][0].as_py()) for name in texts.table.column_names if name in read}
        if not any(fields.values()):
            raise DataError("an explanation needs a text with words, got an empty one")
        return fields
