"""Measure a model on texts whose labels are known.

    model, Split (n_texts)  ->  Evaluation: predictions, truth, metrics, intervals

Labels are matched by id, else by name. A label of the texts that is not in the model's label space gets a number behind
the model's labels. Such labels, and those that no training text has, count as missed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from longtail.data.dataset import TEXT, Dataset, Split
from longtail.data.matching import match
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.labels.model_labels import check_known
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions, Intervals, MetricOptions, Metrics, evaluate, intervals
from longtail.metrics.hits import judge
from longtail.run.progress import SILENT, Progress
from longtail.run.run import Precision, Run
from longtail.text.readings import TextReadings
from longtail.types import LabelMatrix, TopK

DEV = "dev"
SHOWN = 5
"""Labels per text that reports show; at least as many are predicted."""
CUT = 20
"""Labels per text that are predicted at least where a threshold cuts the lists."""


class LabelScore(NamedTuple):
    """Counts of one label among the first `SHOWN` suggestions."""

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
    """Predictions of a model, the truth, and metrics of both."""

    split: Split
    predicted: TopK  # (n_texts, k) numbers in `vocabulary`
    truth: LabelMatrix  # (n_texts, n_labels) the same numbers
    vocabulary: Vocabulary
    """The labels of the model, then those that only the texts have."""
    train_counts: NDArray[np.int64]  # (n_labels of the model,) 0 for labels without training texts
    n_train_texts: int
    options: MetricOptions
    metrics: Metrics
    intervals: Intervals | None
    new: Metrics | None
    """Metrics without the texts that occur word for word in training, if they were asked for."""
    predict_s: float
    n_cut: int = 0
    """Texts of which the model read only the beginning."""

    def __repr__(self) -> str:
        shown = [
            f"{name} {value:.3f}" for name, value in self.metrics.values.items() if name.startswith(("P@", "nDCG@"))
        ]
        return f"Evaluation({', '.join([f'{self.metrics.n_texts:,} texts', *shown])})"

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        results = self.metrics.plain() | {"predict_s": self.predict_s}
        if self.intervals is not None:
            drawn = self.intervals.plain()
            results["intervals"] = {key: drawn[key] for key in ("metrics", "bands", "bootstrap")}
        if self.new is not None:
            results["without_seen_texts"] = self.new.plain()
        return results

    def label_scores(self) -> list[LabelScore]:
        """Return the counts of every label that a text has or that is among the first `SHOWN` suggestions of one."""
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
    tail_weight: float | None = None,
    precision: Precision | None = None,
    run: Run | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
) -> Evaluation:
    """Tag the texts of `split` and compare with their labels.

    With `bootstrap` every metric gets an interval. With `seen` (the training texts) the metrics are also given without
    the texts that occur there word for word. `tail_weight`, `precision`, `run`, `threads` and `progress` are those of
    `Method.top_k`. PSP@k and PSnDCG@k use the constants of the model's options unless `options` names others.
    """
    run = Run.of(run, threads, progress)
    options = options or MetricOptions()
    if options.propensities is None:
        options = options.model_copy(update={"propensities": (model.options.propensity,)})
    check_known(split, model.labels)
    truth, vocabulary = truth_for(model.vocabulary_, split)
    k = list_length(options)
    texts = TextReadings.of(split)
    predicted, predict_s = timed_top_k(
        model, split, k, texts=texts, tail_weight=tail_weight, precision=precision, run=run
    )
    n_train_texts = int(model.facts_["n_texts"])

    def judged(lists: TopK, labels: LabelMatrix) -> Metrics:
        return evaluate(lists, labels, model.train_counts_, n_train_texts, options)

    drawn = None
    if bootstrap is not None:
        with run.progress.step("intervals", bootstrap.n_resamples, "resamples") as advance:
            drawn = intervals(predicted, truth, model.train_counts_, n_train_texts, options, bootstrap)
            advance(bootstrap.n_resamples)
    new = None
    if seen is not None:
        rows = np.flatnonzero(~occurs_in(split, seen))
        if not len(rows):
            raise DataError(f"all {len(split):,} texts occur word for word in the texts that were to be left out")
        new = judged(TopK(predicted.labels[rows], predicted.scores[rows]), truth.take(rows))
    return Evaluation(
        split=split,
        predicted=predicted,
        truth=truth,
        vocabulary=vocabulary,
        train_counts=model.train_counts_,
        n_train_texts=n_train_texts,
        options=options,
        metrics=judged(predicted, truth),
        intervals=drawn,
        new=new,
        predict_s=predict_s,
        n_cut=int(texts.cut().sum()),
    )


def list_length(options: MetricOptions) -> int:
    """Return how many labels per text are predicted for these metrics."""
    return max(*options.at, SHOWN if options.threshold is None else CUT)


def timed_top_k(
    model: Method,
    split: Split,
    k: int,
    *,
    texts: TextReadings | None = None,
    tail_weight: float | None = None,
    precision: Precision | None = None,
    run: Run | None = None,
) -> tuple[TopK, float]:
    """Return the lists of `Method.top_k` and how many seconds they took; `texts` are those of the split, unread."""
    run = run or Run()
    warm_up = split.take(np.arange(min(2, len(split))))
    model.top_k(warm_up, 1, precision=precision, run=replace(run, progress=SILENT))  # loads kernels
    start = time.perf_counter()
    predicted = model.top_k(split if texts is None else texts, k, tail_weight=tail_weight, precision=precision, run=run)
    return predicted, time.perf_counter() - start


def truth_for(known: Vocabulary, split: Split) -> tuple[LabelMatrix, Vocabulary]:
    """Return the labels of a split in a model's numbers, unknown ones behind, and the vocabulary of all of them."""
    used = np.flatnonzero(split.labels.texts_per_label())
    labels = split.vocabulary.take(used)
    matched = match(labels.ids, known)
    not_named = [number for number, label in enumerate(labels.ids) if label not in matched.by_name]
    vocabulary = known.followed_by(labels.take(np.array(not_named, np.int64)))
    new_id = np.full(len(split.vocabulary), -1)
    new_id[used] = [vocabulary.position[matched.id_of(label)] for label in labels.ids]
    return split.labels.renumber(new_id, len(vocabulary)), vocabulary


def occurs_in(split: Split, other: Split) -> NDArray[np.bool_]:
    """Return which texts of `split` occur word for word in `other`: (n_texts,)."""
    texts = split.texts[TEXT]
    return np.asarray(pc.is_in(texts, value_set=other.texts[TEXT]), bool)


def as_trained(model: Method, dataset: Dataset) -> Dataset:
    """Return the data as the model was trained on them: with the same part held out as dev, if one was."""
    held_out = model.facts_.get("held_out")
    if not held_out or DEV in dataset.splits or "train" not in dataset.splits:
        return dataset
    drawn = dataset.hold_out(**held_out)
    return drawn if was_trained_on(model, drawn.train) else dataset


def was_trained_on(model: Method, split: Split) -> bool:
    """Return whether these are the training texts of a model; columns that it does not read may be beside them."""
    prints = (split.fingerprint, fingerprint_of(split, {TEXT, *model.columns, *model.optional_columns}))
    return model.facts_["fingerprint"] in prints


def fingerprint_of(split: Split, columns: set[str]) -> str:
    """Return the checksum of a split with these of its columns of texts alone."""
    names = [name for name in split.texts.column_names if name in columns]
    return replace(split, texts=split.texts.select(names)).fingerprint


def choose_split(model: Method, dataset: Dataset, name: str | None = None) -> tuple[str, Split]:
    """Return the name of the part of `dataset` to evaluate on, and that part.

    By default it is dev, the part that was held out of training, or the only part there is; never the training texts.
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
        if not was_trained_on(model, split):
            return only, split
    reason = (
        "its train part is not what the model was trained on, so it is not known which texts were held out"
        if model.facts_.get("held_out")
        else "the model was trained without `hold_out`: scores on its training texts would be too high"
    )
    names = ", ".join(dataset.splits)
    raise DataError(
        f"{dataset.name} has no dev part (it has {names}), and {reason}; train with `hold_out` or name a `split`"
    )
