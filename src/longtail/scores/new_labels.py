"""Suggest labels that were added after training, beside those that the method scores.

    vectors of a few example texts  ->  prototype: their mean, terms that all of them have counting most
    vector of a text, prototype     ->  cosine  ->  the probability that the text has the label

The curve from cosines to probabilities is learned while the model is trained, from labels that are treated as if they
were new: their prototypes are made of five texts each, and other texts say how often a cosine is right. Scores of
other labels stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longtail.scores.step import STEPS, ScoreStep
from longtail.sparse import sp
from longtail.types import NO_LABEL, LabelMatrix, TopK

Rows = NDArray[np.int64]

N_EXAMPLES = 5
"""Texts that a prototype is made of while the curve is learned."""
_LEAST_TEXTS = 3
_MOST_LABELS = 300
_MOST_TEXTS = 3000
_MOST_KNOTS = 50


@STEPS.register("new_labels")
class NewLabels(ScoreStep):
    """Knows how likely a text has a label whose prototype it resembles."""

    kind: Literal["new_labels"] = "new_labels"
    cosines: tuple[float, ...]
    """Cosines of a text and a prototype made of examples, ascending; between two of them is interpolated."""
    probabilities: tuple[float, ...]
    """The probability at each of `cosines`, ascending."""

    def probability(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of each cosine."""
        return np.interp(cosines, self.cosines, self.probabilities).astype(np.float32)


@dataclass(frozen=True, eq=False)
class NewScores:
    """How likely some texts have each of the added labels."""

    labels: NDArray[np.int32]  # (n_new,)
    probabilities: NDArray[np.float32]  # (n_texts, n_new)

    def merged_into(self, lists: TopK, k: int, allowed: NDArray[np.bool_] | None) -> TopK:
        """Return the `k` best labels of the lists and of these; among equal scores those of the lists are first."""
        chosen = np.ones(len(self.labels), bool) if allowed is None else allowed[self.labels]
        shape = (len(lists), int(chosen.sum()))
        numbers = np.concatenate([lists.labels, np.broadcast_to(self.labels[chosen], shape)], axis=1)
        scores = np.concatenate([lists.scores, self.probabilities[:, chosen]], axis=1)
        scores = np.where(numbers == NO_LABEL, np.float32(-np.inf), scores)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return TopK(np.take_along_axis(numbers, order, 1), np.take_along_axis(scores, order, 1))


def prototype(examples: Any) -> Any:
    """Return the prototype (1, width) of the vectors of examples (n, width), of length 1."""
    mean = np.asarray(examples.mean(axis=0)).reshape(1, -1)
    shared = np.asarray((examples != 0).mean(axis=0)).reshape(1, -1)
    weights = mean * shared
    return weights / (np.linalg.norm(weights) or 1.0)


def learn_new_labels(labels: LabelMatrix, vectors_of: Callable[[Rows], Any], seed: int = 0) -> NewLabels | None:
    """Return the step that knows how likely a cosine is right; None where too few labels have enough texts.

    Args:
        labels: The labels of the training texts.
        vectors_of: Returns the vectors (n, width) of some of these texts, of length 1, sparse or dense.
        seed: What labels and texts are drawn by.
    """
    from sklearn.isotonic import IsotonicRegression

    rng = np.random.default_rng([seed, 7])
    columns = labels.to_scipy().tocsc()
    drawn = rng.permutation(np.flatnonzero(np.diff(columns.indptr) >= _LEAST_TEXTS))[:_MOST_LABELS]
    if len(drawn) < 2:
        return None
    examples = [
        rng.permutation(texts)[: min(N_EXAMPLES, len(texts) - 1)]
        for texts in (columns.indices[columns.indptr[label] : columns.indptr[label + 1]] for label in drawn)
    ]
    asked = np.sort(rng.permutation(labels.n_texts)[:_MOST_TEXTS])
    rows = np.unique(np.concatenate([asked, *examples]))
    vectors, place = vectors_of(rows), np.searchsorted(rows, asked)
    cosines = cosine(vectors[place], np.vstack([prototype(vectors[np.searchsorted(rows, some)]) for some in examples]))
    right = np.asarray(columns[asked][:, drawn].todense()) > 0
    counted = np.stack([~np.isin(asked, some) for some in examples], axis=1)
    # One right text at a cosine of 1 and one wrong one at 0: few texts make nothing certain.
    x, y = np.append(cosines[counted].astype(np.float64), [0, 1]), np.append(right[counted], [False, True])
    curve = IsotonicRegression(y_min=0, y_max=1).fit(x, y)
    knots, values = curve.X_thresholds_, curve.y_thresholds_
    some = np.unique(np.linspace(0, len(knots) - 1, min(len(knots), _MOST_KNOTS)).round().astype(np.int64))
    return NewLabels(cosines=tuple(knots[some].tolist()), probabilities=tuple(values[some].tolist()))


def of_unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return dense vectors (n, width) scaled to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def cosine(vectors: Any, prototypes: Any) -> NDArray[np.float32]:
    """Return the cosine of each text (n_texts, width) and each prototype (n, width)."""
    dense = vectors @ np.asarray(prototypes).T
    return np.asarray(dense.todense() if sp.issparse(dense) else dense, np.float32)
