"""The nearest training texts that carry a label: what a person compares a new text with.

examples = ExampleTexts.of(split)                reads the training texts once
examples.nearest(fields, label id, n)    ->  up to n examples, the most similar first
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.data.dataset import TEXT, Split
from longtail.explain.explanation import Example
from longtail.run.run import Run
from longtail.text.tfidf import Tfidf
from longtail.types import LabelMatrix


@dataclass(frozen=True, eq=False)
class ExampleTexts:
    """Training texts as TF-IDF, found by label."""

    split: Split
    tfidf: Tfidf
    rows: Any  # csr_matrix (n_texts, n_features) float32, rows of length 1
    texts_of: LabelMatrix  # (n_labels, n_texts) the texts of each label

    @classmethod
    def of(cls, split: Split, run: Run | None = None) -> ExampleTexts:
        """Return the texts of a split, made ready to be compared with others."""
        tfidf = Tfidf()
        return cls(split, tfidf, tfidf.fit_transform(split.texts, run), split.labels.transpose())

    def nearest(self, fields: Mapping[str, str], label: str, n: int = 3) -> tuple[Example, ...]:
        """Return the n texts with a label (its id) that are most similar to the text of these fields."""
        number = self.split.vocabulary.position.get(label)
        if number is None or not len(self.texts_of[number]):
            return ()
        texts = self.texts_of[number]
        indices, values = self.tfidf.transform_one(fields)
        row = np.zeros(self.rows.shape[1], np.float32)
        row[indices] = values
        cosines = self.rows[texts] @ row
        best = np.argsort(-cosines, kind="stable")[:n]
        return tuple(
            Example(int(texts[at]), float(cosines[at]), self.split.texts[TEXT][int(texts[at])].as_py())
            for at in best.tolist()
        )
