"""How well a model tags texts whose labels are known.

    model, Split (n_texts)  ->  Evaluation: predictions beside the truth, metrics, intervals

Labels are matched by id. A label of the texts that the model does not know gets a number behind the model's
labels and is missed by every prediction, as it must be.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import TEXT, Dataset, Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions, Intervals, MetricOptions, Metrics, evaluate, intervals
from longtail.metrics.hits import judge
from longtail.progress import SILENT, Progress
from longtail.types import LabelMatrix, TopK

DEV = "dev"
SHOWN = 5
"""Labels a text that reports look at; at least so many are predicted."""


class LabelScore(NamedTuple):
    """How one label fared in the first `SHOWN` suggestions."""

    label: int
    n_train: int
    n_true: int
    n_predicted: int
    n_right: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.n_right / (self.n_true + self.n_predicted)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions of a model beside the truth, and what they are worth."""

    split: Split
    predicted: TopK  # (n_texts, k) numbers in `vocabulary`
    truth: LabelMatrix  # (n_texts, n_labels) the same numbers
    vocabulary: Vocabulary
    """The model's labels, then those that only the texts have."""
    train_counts: NDArray[np.int64]  # (n_labels of the model,)
    n_train_texts: int
    options: MetricOptions
    metrics: Metrics
    intervals: Intervals | None
    new: Metrics | None
    """The same without texts that occur word for word in training, where it was asked for."""
    predict_s: float

    def plain(self) -> dict[str, Any]:
        """As plain data for JSON."""
        found = self.metrics.plain() | {"predict_s": self.predict_s}
        if self.intervals is not None:
            drawn = self.intervals.plain()
            found["intervals"] = {key: drawn[key] for key in ("metrics", "bands", "bootstrap")}
        if self.new is not None:
            found["without_seen_texts"] = self.new.plain()
        return found

    def label_scores(self) -> list[LabelScore]:
        """Every label with a true text or a suggestion among the first `SHOWN`."""
        first = MetricOptions(at=(SHOWN,))
        judged = judge(self.predicted, self.truth, self.train_counts, self.n_train_texts, first)
        n = len(judged.train_counts)
        true = np.bincount(judged.true_label, minlength=n)
        predicted = np.bincount(judged.labels[judged.labels >= 0], minlength=n)
        right = np.bincount(judged.hit_label, minlength=n)
        columns = (judged.train_counts, true, predicted, right)
        return [
            LabelScore(label, *(int(column[label]) for column in columns))
            for label in np.flatnonzero(true + predicted).tolist()
        ]


def evaluate_model(
    model: Method,
    split: Split,
    options: MetricOptions | None = None,
    *,
    bootstrap: BootstrapOptions | None = None,
    seen: Split | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Tag the texts of `split` and compare with their labels.

    With `bootstrap` every metric gets an interval. With `seen` (the training texts) the metrics are also given
    without the texts that occur there word for word.
    """
    options = options or MetricOptions()
    truth, vocabulary = truth_for(model.vocabulary_, split)
    predicted, predict_s = timed_top_k(model, split, list_length(options), threads, progress)
    n_train_texts = int(model.facts_["n_texts"])
    judged = predicted, truth, model.train_counts_, n_train_texts, options
    found = None
    if bootstrap is not None:
        with progress.step("intervals", bootstrap.n_resamples, "resamples") as advance:
            found = intervals(*judged, bootstrap)
            advance(bootstrap.n_resamples)
    new = None
    if seen is not None:
        rows = np.flatnonzero(~occurs_in(split, seen))
        if not len(rows):
            raise DataError(f"all {len(split):,} texts occur word for word in the texts that were to be left out")
        kept = TopK(predicted.labels[rows], predicted.scores[rows])
        new = evaluate(kept, truth.take(rows), *judged[2:])
    return Evaluation(
        split,
        predicted,
        truth,
        vocabulary,
        model.train_counts_,
        n_train_texts,
        options,
        evaluate(*judged),
        found,
        new,
        predict_s,
    )


def list_length(options: MetricOptions) -> int:
    """How many labels a text are predicted for these metrics."""
    return max(*options.at, SHOWN)


def timed_top_k(
    model: Method, split: Split, k: int, threads: int | None = None, progress: Progress = SILENT
) -> tuple[TopK, float]:
    """The lists of a model, and how many seconds they took."""
    model.top_k(split.take(np.arange(min(2, len(split)))), 1, threads=threads)  # kernels are loaded on first use
    start = time.perf_counter()
    predicted = model.top_k(split, k, threads=threads, progress=progress)
    return predicted, time.perf_counter() - start


def truth_for(known: Vocabulary, split: Split) -> tuple[LabelMatrix, Vocabulary]:
    """The labels of a split in a model's numbers, unknown ones behind; and the vocabulary of all these."""
    given = split.vocabulary
    used = np.flatnonzero(split.labels.texts_per_label())
    strangers = [label for label in used.tolist() if given.ids[label] not in known.position]
    vocabulary = known.extended(given.ids[label] for label in strangers)
    if strangers:
        vocabulary = vocabulary.described_by(known, given)
    new_id = np.full(len(given), -1)
    new_id[used] = [vocabulary.position[given.ids[label]] for label in used.tolist()]
    return split.labels.renumber(new_id, len(vocabulary)), vocabulary


def occurs_in(split: Split, other: Split) -> NDArray[np.bool_]:
    """Which texts of `split` stand in `other` word for word: (n_texts,)."""
    texts = split.texts[TEXT]
    return np.asarray(pc.is_in(texts, value_set=other.texts[TEXT]), bool)


def as_trained(model: Method, dataset: Dataset) -> Dataset:
    """The data as the model was trained on them: with the same part held out as dev, where one was."""
    held_out = model.facts_.get("held_out")
    if not held_out or DEV in dataset.splits or "train" not in dataset.splits:
        return dataset
    drawn = dataset.hold_out(**held_out)
    return drawn if drawn.train.fingerprint == model.facts_["fingerprint"] else dataset


def choose_split(model: Method, dataset: Dataset, name: str | None = None) -> tuple[str, Split]:
    """The part of `dataset` to evaluate on, and what it is called.

    By default dev, the part that was held out of training, or the only part there is; never the training texts.
    """
    if name is not None and (name in dataset.splits or name != DEV):
        return name, dataset.split(name)
    if DEV in dataset.splits:
        return DEV, dataset.dev
    drawn = as_trained(model, dataset)
    if DEV in drawn.splits:
        return "dev (held out)", drawn.dev
    if name is None and len(dataset.splits) == 1:
        [(only, split)] = dataset.splits.items()
        if split.fingerprint != model.facts_["fingerprint"]:
            return only, split
    reason = (
        "is not what the model was trained on, so which texts were held out cannot be told"
        if model.facts_.get("held_out")
        else "the model was trained without --hold-out: scores on its training texts would flatter"
    )
    parts = ", ".join(dataset.splits)
    raise DataError(
        f"{dataset.name} has no dev part (it has {parts}), and {reason}; train with --hold-out or name a --split"
    )
