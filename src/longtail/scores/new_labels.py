"""Suggest labels that were added after training, beside those that the method scores.

    vectors of a few example texts  ->  prototype: their mean, terms that all of them have counting most
    vector of a text, prototype     ->  cosine  ->  the probability that the text has the label
    a name of the label in a text   ->  log odds (`labels.new_names`), alone or beside those of the cosine

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

from longtail.labels.name_ranker import logistic
from longtail.labels.new_names import NameOdds
from longtail.scores.step import NO_CURVE, STEPS, Curve, ScoreStep
from longtail.sparse import sp
from longtail.types import NO_LABEL, LabelMatrix, TopK

Rows = NDArray[np.int64]

N_EXAMPLES = 5
"""Texts that a prototype is made of while the curve is learned."""
_LEAST_TEXTS = 3
_MOST_LABELS = 300
_MOST_TEXTS = 3000
_MOST_KNOTS = 50
_CERTAIN = 1e-5


@STEPS.register("new_labels")
class NewLabels(ScoreStep):
    """Knows how likely a text has a label whose prototype it resembles, or whose name it has."""

    kind: Literal["new_labels"] = "new_labels"
    cosines: tuple[float, ...] = ()
    """Cosines of a text and a prototype made of examples, ascending; between two of them is interpolated."""
    probabilities: tuple[float, ...] = ()
    """The probability at each of `cosines`, ascending."""
    names: NameOdds | None = None
    """How likely a text has a label if it has its name; None where that could not be learned."""
    both: tuple[float, float, float] | None = None
    """Of a label with examples whose name the text has: weights of the log odds by the cosine and by the name, and a
    constant; together they are the log odds."""

    def exported_curve(self) -> Curve:
        """Return no points: it says something of labels that are added later, and `edits` refuses these."""
        return NO_CURVE

    def probability(self, cosines: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of each cosine."""
        return np.interp(cosines, self.cosines, self.probabilities).astype(np.float32)

    def with_name(self, probabilities: NDArray[np.float32], odds: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return how likely labels with examples are whose names texts have.

        Args:
            probabilities: By the examples, (n_matched,).
            odds: Log odds by the names, (n_matched,).
        """
        if self.both is None:
            return probabilities
        of_examples, of_names, constant = self.both
        return sigmoid(of_examples * log_odds(probabilities) + of_names * odds + constant)


@dataclass(frozen=True, eq=False)
class NewScores:
    """How likely some texts have each of the added labels."""

    labels: NDArray[np.int32]  # (n_new,) those with examples
    probabilities: NDArray[np.float32]  # (n_texts, n_new)
    named: TopK | None = None
    """Of labels without examples, those whose names the texts have."""

    def merged_into(self, lists: TopK, k: int, allowed: NDArray[np.bool_] | None) -> TopK:
        """Return the `k` best labels of the lists and of these; among equal scores those of the lists are first."""
        chosen = np.ones(len(self.labels), bool) if allowed is None else allowed[self.labels]
        shape = (len(lists), int(chosen.sum()))
        named = TopK.empty(len(lists), 0) if self.named is None else self.named
        in_use = named.labels if allowed is None else np.where(allowed[named.labels], named.labels, np.int32(NO_LABEL))
        numbers = np.concatenate([lists.labels, np.broadcast_to(self.labels[chosen], shape), in_use], axis=1)
        scores = np.concatenate([lists.scores, self.probabilities[:, chosen], named.scores], axis=1)
        scores = np.where(numbers == NO_LABEL, np.float32(-np.inf), scores)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return TopK(np.take_along_axis(numbers, order, 1), np.take_along_axis(scores, order, 1))


def prototype(examples: Any) -> Any:
    """Return the prototype (1, width) of the vectors of examples (n, width), of length 1."""
    mean = np.asarray(examples.mean(axis=0)).reshape(1, -1)
    shared = np.asarray((examples != 0).mean(axis=0)).reshape(1, -1)
    weights = mean * shared
    return weights / (np.linalg.norm(weights) or 1.0)


def texts_to_ask(n_texts: int, seed: int = 0) -> Rows:
    """Return the training texts, ascending, that say how often a cosine or a name is right."""
    return np.sort(np.random.default_rng([seed, 8]).permutation(n_texts)[:_MOST_TEXTS])


def learn_new_labels(
    labels: LabelMatrix,
    vectors_of: Callable[[Rows], Any],
    seed: int = 0,
    names: tuple[NameOdds, Any] | None = None,
) -> NewLabels | None:
    """Return the step that knows how likely a cosine is right; None where too few labels have enough texts.

    Args:
        labels: The labels of the training texts.
        vectors_of: Returns the vectors (n, width) of some of these texts, of length 1, sparse or dense.
        seed: What labels and texts are drawn by.
        names: What `learn_name_odds` learned from the texts of `texts_to_ask`.
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
    asked = texts_to_ask(labels.n_texts, seed)
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
    step = NewLabels(cosines=tuple(knots[some].tolist()), probabilities=tuple(values[some].tolist()))
    if names is None:
        return step
    odds, of_texts = names
    matched = of_texts[:, drawn].tocoo()
    usable = counted[matched.row, matched.col]
    text, label, of_names = matched.row[usable], matched.col[usable], matched.data[usable]
    of_cosines = log_odds(step.probability(cosines[text, label]))
    both = logistic(np.stack([of_cosines, of_names], axis=1), right[text, label], np.ones(len(text)))
    return step.model_copy(update={"names": odds, "both": tuple(both.tolist())})


def log_odds(probabilities: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the log odds of probabilities; those of 0 and 1 are finite."""
    clipped = np.clip(probabilities.astype(np.float64), _CERTAIN, 1 - _CERTAIN)
    return np.asarray(np.log(clipped / (1 - clipped)))


def sigmoid(odds: NDArray[np.float64]) -> NDArray[np.float32]:
    """Return the probabilities of log odds."""
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -60, 60))), np.float32)


def of_unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return dense vectors (n, width) scaled to length 1; those of length 0 stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def cosine(vectors: Any, prototypes: Any) -> NDArray[np.float32]:
    """Return the cosine of each text (n_texts, width) and each prototype (n, width)."""
    dense = vectors @ np.asarray(prototypes).T
    return np.asarray(dense.todense() if sp.issparse(dense) else dense, np.float32)
