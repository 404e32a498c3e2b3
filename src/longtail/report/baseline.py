"""The linear baseline beside a model: trained on the same texts, measured on the same texts, with paired intervals."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from longtail.data.dataset import Split
from longtail.evaluation import Evaluation, list_length, timed_top_k
from longtail.methods import create_method
from longtail.methods.base import Method
from longtail.metrics import BootstrapOptions, evaluate, intervals
from longtail.run.run import Run
from longtail.types import NO_LABEL, TopK

BASELINE = "linear"
_ALONE = {"calibrate": False}
"""Only its order is looked at."""


def is_baseline(model: Method) -> bool:
    """Return whether a model is the baseline itself."""
    usual = create_method(BASELINE, _ALONE)
    return type(model) is type(usual) and model.options.model_copy(update=_ALONE) == usual.options


def measure_baseline(
    train: Split, evaluation: Evaluation, run: Run, bootstrap: BootstrapOptions | None = None
) -> dict[str, Any]:
    """Return metrics and costs of the baseline, and how far the evaluated model is from it.

    Args:
        train: The training texts of the model.
        evaluation: The model's predictions beside the truth.
        run: How the work is done.
        bootstrap: How intervals of the differences are drawn.
    """
    start = time.perf_counter()
    baseline = create_method(BASELINE, _ALONE).fit(train, run=run)
    train_s = time.perf_counter() - start
    lists, predict_s = timed_top_k(baseline, evaluation.split, list_length(evaluation.options), run=run)
    position = evaluation.vocabulary.position
    number = np.array([position[label] for label in baseline.vocabulary_.ids], np.int32)
    lists = TopK(np.where(lists.labels == NO_LABEL, np.int32(NO_LABEL), number[lists.labels]), lists.scores)
    counts, n_texts, options = evaluation.train_counts, evaluation.n_train_texts, evaluation.options
    bootstrap = bootstrap or BootstrapOptions()
    beside = intervals(evaluation.predicted, evaluation.truth, counts, n_texts, options, bootstrap, minus=lists)
    return {
        "method": BASELINE,
        "train_s": train_s,
        "predict_s": predict_s,
        "metrics": evaluate(lists, evaluation.truth, counts, n_texts, options).plain()["metrics"],
        "difference": {
            name: {"value": one.value, "low": one.low, "high": one.high, "certain": one.excludes_zero}
            for name, one in beside.values.items()
        },
    }
