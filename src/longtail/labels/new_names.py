"""How likely a label fits a text that has its name, where nothing else is known of the label.

    learn_name_odds(vocabulary, labels, texts, reader)  ->  NameOdds, and the log odds of these texts
    odds.of_matches(matches, table)                     ->  log odds of each match, (n_matched,)

The facts about a match are those of `name_ranker` that do not depend on other labels and their texts: a table of a few
new names then gives what the table of a whole vocabulary gave in training.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from longtail.data.vocabulary import Vocabulary
from longtail.kernels.reference.names import COUNT, FIRST, ORDERED, PREFERRED, TITLE, WHOLE, WORDS
from longtail.labels.name_matches import NameMatches, NameOptions, NameTable
from longtail.labels.name_ranker import logistic, right_matches
from longtail.options import Options
from longtail.sparse import sp
from longtail.types import LabelMatrix

FACTS = (
    "log count",
    "first place",
    "log first place",
    "in title",
    "one word",
    "log words",
    "preferred",
    "words in order",
    "in compounds only",
    "log letters",
    "log words of the text",
)
"""What is known of a match, in the order of `NameOdds.weights`."""
_MOST_LABELS = 5000
_FEWEST_RIGHT = 20
"""With fewer right matches nothing is learned."""


class NameOdds(Options):
    """Log odds of a match by facts about it."""

    reader: NameOptions
    """How names are looked for."""
    weights: tuple[float, ...]
    """One per fact, and a constant."""

    def of_matches(self, matches: NameMatches, table: NameTable) -> NDArray[np.float64]:
        """Return the log odds that each match is right, (n_matched,)."""
        margins: NDArray[np.float64] = name_facts(matches, table) @ np.array(self.weights[:-1])
        return margins + self.weights[-1]


def name_facts(matches: NameMatches, table: NameTable) -> NDArray[np.float32]:
    """Return the facts about each match, (n_matched, n_facts)."""
    stats, length = matches.stats, np.maximum(matches.n_words, 1)[matches.texts()]
    columns = (
        np.log1p(stats[:, COUNT]),
        stats[:, FIRST] / length,
        np.log1p(stats[:, FIRST]),
        stats[:, TITLE] > 0,
        stats[:, WORDS] == 1,
        np.log(stats[:, WORDS]),
        stats[:, PREFERRED],
        stats[:, ORDERED],
        stats[:, WHOLE] == 0,
        np.log1p(table.arrays["letters"][matches.names]),
        np.log(length),
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


def learn_name_odds(
    vocabulary: Vocabulary, labels: LabelMatrix, frequency: NDArray[np.int64], texts: pa.Table, reader: NameOptions
) -> tuple[NameOdds, Any] | None:
    """Return log odds learned from some training texts, and a sparse matrix (n_texts, n_labels) of theirs.

    A match of a frequent label counts less, by the root of its texts: new labels are like rare ones. Returns None where
    too few names of labels are in the texts.

    Args:
        vocabulary: The labels.
        labels: Those of the texts.
        frequency: The training texts of each label, (n_labels,).
        texts: The columns of the texts.
        reader: How names are looked for.
    """
    some = np.sort(np.argsort(-frequency, kind="stable")[:_MOST_LABELS])
    known = vocabulary.take(some)
    if not any(map(str.isalpha, "".join(known.names))):
        return None
    table = NameTable.of(known, reader)
    matches = table.match(texts)
    numbers = np.full(labels.n_labels, -1)
    numbers[some] = np.arange(len(some))
    right = right_matches(matches, labels.renumber(numbers, len(some)))
    if right.sum() < _FEWEST_RIGHT:
        return None
    weight = 1 / np.sqrt(np.maximum(frequency[some[matches.labels]], 1))
    weights = logistic(name_facts(matches, table), right, weight)
    odds = NameOdds(reader=reader, weights=tuple(weights.tolist()))
    values, indptr = odds.of_matches(matches, table), matches.indptr
    return odds, sp.csr_matrix((values, some[matches.labels], indptr), shape=(labels.n_texts, labels.n_labels))
