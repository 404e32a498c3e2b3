"""How likely a label fits a text in which its name occurs: logistic regression on facts about the match.

    features(matches, table, …)    ->  (n_matched, n_features) float32, which all labels have
    NameRanker.fit(…)              ->  two rankers: of labels with training texts, which have features of the label
                                       besides, and of labels without; it learns from the same matches without these
    ranker.probabilities(matches)  ->  (n_matched,) float32

The features are those of Annif's MLLM and some more: how often and where a name occurs, how long and how ambiguous it
is, whether it is preferred, how rare. Counts of labels and names are those of other texts: no assignment explains
itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.kernels.reference.names import (
    CLUE,
    COUNT,
    FIRST,
    FREE,
    LAST,
    ORDERED,
    PREFERRED,
    QUALIFIED,
    RIVAL_CLUE,
    RIVALS,
    TITLE,
    WHOLE,
    WORDS,
)
from longtail.labels.name_matches import SPAN_TEXTS, NameMatches, NameTable
from longtail.persist import Folder
from longtail.run.run import Run
from longtail.structure import Structure
from longtail.types import LabelMatrix

FEATURES = (
    "log count",
    "log count outside of longer names",
    "inside longer names only",
    "first place",
    "log first place",
    "spread",
    "in title",
    "log count in title",
    "one word",
    "log words",
    "preferred",
    "words in order",
    "share outside of compounds",
    "in compounds only",
    "log labels of the name",
    "qualified",
    "qualifier seen",
    "qualifier of a rival seen",
    "qualifier seen less than a rival's",
    "log count of the most frequent",
    "log matches of the text",
    "log words of the text",
    "first language",
    "preferred in first language",
    "log letters",
    "log share of texts with the name",
    "new name",
)
"""What all labels have, in the order of `features`."""
LABEL_FEATURES = ("logit of precision", "log right matches", "log share of texts", "log matches")
"""What labels with training texts have besides, in the order of `label_features`."""
_PRIOR_MATCHES = 2.0
"""A label's precision begins as if so many matches had been as good as all others."""
_STEPS, _CLOSE = 30, 1e-5
_RIDGE = 1.0

Counts = Mapping[str, NDArray[Any]]
"""Of training: `texts`, `matches` and `hits` (right matches) of each label; `names`, the matches of each name."""


def count_matches(table: NameTable, split: Split, run: Run) -> Counts:
    """Return the counts of training texts."""
    counts: dict[str, NDArray[Any]] = {"texts": split.labels.texts_per_label()}
    with run.progress.step("names", len(split), "texts") as advance:
        for start in range(0, len(split), SPAN_TEXTS):
            texts = split.texts.slice(start, SPAN_TEXTS)
            labels = split.labels.take(np.arange(start, start + len(texts)))
            some = _counts(table, table.match(texts), labels)
            counts |= {name: counts[name] + some[name] if name in counts else some[name] for name in some}
            advance(len(texts))
    return counts


def _counts(table: NameTable, matches: NameMatches, labels: LabelMatrix) -> Counts:
    right = matches.labels[right_matches(matches, labels)]
    return {
        "matches": np.bincount(matches.labels, minlength=table.n_labels),
        "hits": np.bincount(right, minlength=table.n_labels),
        "names": np.bincount(matches.names_once(), minlength=table.n_names),
    }


def _counts_of_others(counts: Counts, matches: NameMatches, labels: LabelMatrix, table: NameTable) -> Counts:
    some = {**_counts(table, matches, labels), "texts": labels.texts_per_label()}
    return {name: counts[name] - some[name] for name in some}


def features(matches: NameMatches, table: NameTable, counts: Counts, n_texts: int) -> NDArray[np.float32]:
    """Return the features that all labels have."""
    stats, text = matches.stats, matches.texts()
    per_text = np.diff(matches.indptr)
    matched = per_text > 0
    most = np.ones(len(per_text), np.float32)
    most[matched] = np.maximum.reduceat(stats[:, COUNT], matches.indptr[:-1][matched]) if matched.any() else 1
    length = np.maximum(matches.n_words, 1)[text]
    first_language = matches.languages[text] == 0
    with_name = counts["names"][matches.names]
    columns = (
        np.log1p(stats[:, COUNT]),
        np.log1p(stats[:, FREE]),
        stats[:, FREE] == 0,
        stats[:, FIRST] / length,
        np.log1p(stats[:, FIRST]),
        (stats[:, LAST] - stats[:, FIRST]) / length,
        stats[:, TITLE] > 0,
        np.log1p(stats[:, TITLE]),
        stats[:, WORDS] == 1,
        np.log(stats[:, WORDS]),
        stats[:, PREFERRED],
        stats[:, ORDERED],
        stats[:, WHOLE] / stats[:, COUNT],
        stats[:, WHOLE] == 0,
        np.log(stats[:, RIVALS]),
        stats[:, QUALIFIED],
        stats[:, CLUE],
        stats[:, RIVAL_CLUE],
        stats[:, CLUE] < stats[:, RIVAL_CLUE],
        np.log(most)[text],
        np.log(np.maximum(per_text, 1))[text],
        np.log(length),
        first_language,
        stats[:, PREFERRED] * first_language,
        np.log1p(table.arrays["letters"][matches.names]),
        np.log((with_name + 0.5) / (n_texts + 1)),
        with_name == 0,
    )
    return np.stack([np.asarray(column, np.float32) for column in columns], axis=1)


@dataclass(frozen=True, eq=False)
class NameRanker:
    """Weights of the features, and the counts of labels and names in training."""

    weights: NDArray[np.float64]  # (n_features + n_label_features + 1,), the last one of 1
    new_weights: NDArray[np.float64]  # (n_features + 1,) for labels without training texts
    counts: Counts
    n_texts: int

    @classmethod
    def fit(
        cls, table: NameTable, counts: Counts, n_texts: int, groups: Iterable[tuple[NameMatches, LabelMatrix]]
    ) -> NameRanker:
        """Learn from the matches of groups of training texts and their labels.

        A group's features come from the counts of all other texts. A match of a frequent label weighs less than one of
        a rare label, by the root of its texts: labels without texts are like rare ones.
        """
        rows = []
        for matches, labels in groups:
            others = _counts_of_others(counts, matches, labels, table)
            n_others = n_texts - labels.n_texts
            common = features(matches, table, others, n_others)
            of_labels = label_features(matches.labels, others, n_others)
            known = counts["texts"][matches.labels]
            right = right_matches(matches, labels)
            rows.append((common, of_labels, right, known, others["texts"][matches.labels] > 0))
        common, of_labels, right, known, seen = (np.concatenate(column) for column in zip(*rows, strict=True))
        weight = 1 / np.sqrt(np.maximum(known, 1))
        new = logistic(common[known > 0], right[known > 0], weight[known > 0])
        both = np.concatenate([common[seen], of_labels[seen]], axis=1)
        return cls(logistic(both, right[seen], weight[seen]), new, counts, n_texts)

    def without(self, matches: NameMatches, labels: LabelMatrix, table: NameTable) -> NameRanker:
        """Return the ranker with the counts of all training texts but these, given by their matches and labels."""
        others = _counts_of_others(self.counts, matches, labels, table)
        return replace(self, counts=others, n_texts=self.n_texts - labels.n_texts)

    def probabilities(self, matches: NameMatches, table: NameTable) -> NDArray[np.float32]:
        """Return how likely each match is right."""
        common = features(matches, table, self.counts, self.n_texts)
        of_labels = label_features(matches.labels, self.counts, self.n_texts)
        n = common.shape[1]
        margins = common @ self.weights[:n] + of_labels @ self.weights[n:-1] + self.weights[-1]
        new = common @ self.new_weights[:-1] + self.new_weights[-1]
        margins = np.where(self.counts["texts"][matches.labels] > 0, margins, new)
        probabilities: NDArray[np.float32] = (1 / (1 + np.exp(-margins))).astype(np.float32)
        return probabilities

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `load` reads."""
        numbers = {"weights": self.weights, "new_weights": self.new_weights, "n_texts": np.array([self.n_texts])}
        return {**numbers, **{f"counts.{name}": counts for name, counts in self.counts.items()}}

    @classmethod
    def load(cls, folder: Folder, name: str, table: NameTable) -> NameRanker:
        """Open the arrays of a ranker for the names of a table."""
        stored = Structure(folder.arrays(name), f"{folder.path}, {name}")
        sizes = {"texts": table.n_labels, "matches": table.n_labels, "hits": table.n_labels, "names": table.n_names}
        counts = {kind: stored.numbers(f"counts.{kind}", np.int64, below=2**62, n=size) for kind, size in sizes.items()}
        return cls(
            stored.finite("weights", np.float64, shape=(len(FEATURES) + len(LABEL_FEATURES) + 1,)),
            stored.finite("new_weights", np.float64, shape=(len(FEATURES) + 1,)),
            counts,
            int(stored.numbers("n_texts", np.int64, below=2**62, least=1, n=1)[0]),
        )


def label_features(labels: NDArray[Any], counts: Counts, n_texts: int) -> NDArray[np.float32]:
    """Return the features of labels with training texts, (n_matched, n_label_features)."""
    share = (counts["hits"].sum() + 0.5) / (counts["matches"].sum() + 1)
    hits, matches = counts["hits"][labels], counts["matches"][labels]
    precision = (hits + _PRIOR_MATCHES * share) / (matches + _PRIOR_MATCHES)
    columns = (
        np.log(precision / (1 - precision)),
        np.log1p(hits),
        np.log((counts["texts"][labels] + 0.5) / (n_texts + 1)),
        np.log1p(matches),
    )
    return np.stack(columns, axis=1).astype(np.float32)


def right_matches(matches: NameMatches, labels: LabelMatrix) -> NDArray[np.bool_]:
    """Return which matches are labels of their texts: (n_matched,)."""
    texts = np.repeat(np.arange(labels.n_texts), labels.labels_per_text())
    return np.isin(matches.texts() * labels.n_labels + matches.labels, texts * labels.n_labels + labels.indices)


def logistic(x: NDArray[np.float32], y: NDArray[np.bool_], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weights of a logistic regression, the last one of 1, by Newton's method.

    Columns have the same spread for the ridge; without any match all is even.
    """
    n, width = x.shape
    if not n:
        return np.zeros(width + 1)
    middle, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    spread[spread < 1e-6] = np.inf  # says nothing
    scaled = np.append((x - middle) / spread, np.ones((n, 1)), axis=1).astype(np.float32)  # (n, width + 1)
    ridge = np.full(width + 1, _RIDGE)
    solution = np.zeros(width + 1)
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(scaled @ solution, -30, 30)))
        slope = scaled.T @ (weights * (p - y)) + ridge * solution
        certainty = np.sqrt(weights * p * (1 - p)).astype(np.float32)
        curved = scaled * certainty[:, None]
        curve = (curved.T @ curved).astype(np.float64) + np.diag(ridge)
        step = np.linalg.solve(curve, slope)
        solution -= step
        if np.abs(step).max() < _CLOSE:
            break
    result = solution[:-1] / spread
    return np.append(result, solution[-1] - result @ middle)
