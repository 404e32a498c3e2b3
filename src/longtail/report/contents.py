"""The contents of a report, as plain data for JSON.

report["results"]      metrics over all labels and by band, as fractions, with intervals
report["data"]         counts of the training and of the evaluated texts, and the label-frequency curve
report["reliability"]  how many labels are right by their score, in bins; none where scores are not in 0..1
report["precision_recall"]  both of all suggestions that score at least as much, from the highest score down
report["labels"]       the labels with the best and the worst F1, and pairs that are taken for each other
report["texts"]        a sample with suggested and true labels
report["worst"]        texts where it is surest of something wrong, and why
report["baseline"]     `linear` beside it, where it was measured
report["findings"]     all of this in words
report["model"]        method, options, seed, members, size
report["environment"]  versions and machine
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import TEXT
from longtail.evaluation import SHOWN, Evaluation, LabelScore
from longtail.methods.base import Method
from longtail.metrics import MetricOptions
from longtail.metrics.calibration import reliability
from longtail.metrics.hits import judge
from longtail.report.findings import findings
from longtail.report.mistakes import confused_labels, precision_recall, reasons, worst_texts
from longtail.report.tables import main_length
from longtail.run.local import available_cores
from longtail.types import NO_LABEL

N_TEXTS = 10
N_LABELS = 12
ENOUGH_TEXTS = 3
"""A label with fewer true texts is best or worst by chance."""
TEXT_CHARACTERS = 420
CURVE_POINTS = 80
RECORD_COLUMNS = ("id", "title")
"""What the records of a sample are known by, where the data have it."""
LIBRARIES = ("longtail", "numpy", "scipy", "numba", "pyarrow")


def make_report(
    model: Method,
    evaluation: Evaluation,
    data: str,
    split: str,
    path: str | Path = "",
    *,
    baseline: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the report on an evaluation.

    Args:
        model: The trained model.
        evaluation: Its predictions beside the truth.
        data: The name of the data set.
        split: The name of the evaluated part.
        path: The folder of the model, if it is saved.
        baseline: What `measure_baseline` returned.
    """
    results = evaluation.plain()
    report = {
        "title": f"{model.name} on {data}, {split}",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "model": _model(model, path),
        "data": {"name": data, "split": split} | _data(model, evaluation),
        "results": results,
        "reliability": _reliability(evaluation, main_length(results)),
        "precision_recall": precision_recall(evaluation),
        "labels": _labels(evaluation) | {"confused": confused_labels(evaluation)},
        "texts": [*_texts(evaluation)],
        "worst": [_text(evaluation, row) | {"why": reasons(model, evaluation, row)} for row in worst_texts(evaluation)],
        "baseline": None if baseline is None else dict(baseline),
        "environment": environment(),
    }
    return report | {"findings": findings(report)}


def environment() -> dict[str, Any]:
    """Return the versions of libraries and the machine of this process."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
        "platform": platform.platform(),
        "cores": available_cores(),
    }


def changed_options(options: Mapping[str, Any], usual: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the options that differ from `usual`, by dotted path; `path` is put before each."""
    changed: dict[str, Any] = {}
    for key, value in options.items():
        below = usual.get(key)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            changed |= changed_options(value, below, f"{path}{key}.")
        elif value != below:
            changed[f"{path}{key}"] = value
    return changed


def folder_bytes(path: str | Path) -> int:
    """Return the size of a model on disk."""
    return sum(file.stat().st_size for file in Path(path).iterdir() if file.is_file())


def _model(model: Method, path: str | Path) -> dict[str, Any]:
    described = model.describe()
    members = described.get("members", [])
    options = model.options.plain()
    return {
        "method": model.name,
        "path": str(path),
        "bytes": folder_bytes(path) if path else None,
        "n_features": described.get("n_features"),
        "n_weights": sum(int(member["n_weights"]) for member in members) if members else None,
        "n_members": max(len(members), 1),
        "kind": f"ensemble of {len(members)}" if len(members) > 1 else "single model",
        "choice": described.get("choice", []),
        "seed": model.options.seed,
        "options": options,
        "changed_options": changed_options(options, model.options_class().plain()),
        "trained_on": {key: value for key, value in model.facts_.items() if isinstance(value, str | int | dict)},
    }


def _data(model: Method, evaluation: Evaluation) -> dict[str, Any]:
    labels = evaluation.truth
    used = np.flatnonzero(labels.texts_per_label())
    seen = evaluation.train_counts[evaluation.train_counts > 0]
    return {
        "n_train_texts": evaluation.n_train_texts,
        "n_train_labels": len(seen),
        "n_texts": len(labels),
        "n_labels": len(used),
        "n_unknown_labels": int(np.count_nonzero(~np.isin(used, model.scored_labels_))),
        "labels_per_text": float(labels.labels_per_text().mean()),
        "share_of_cut_texts": evaluation.n_cut / max(len(labels), 1),
        "n_texts_without_labels": evaluation.metrics.n_texts_without_labels,
        "label_frequency": _curve(seen),
    }


def _curve(train_counts: NDArray[np.int64]) -> list[list[int]]:
    """Return [rank, training texts] of labels, most frequent first, at ranks spread evenly on a log scale."""
    ordered = np.sort(train_counts)[::-1]
    ranks = np.unique(np.geomspace(1, len(ordered), CURVE_POINTS).round().astype(np.int64))
    return [[int(rank), int(ordered[rank - 1])] for rank in ranks]


def _reliability(evaluation: Evaluation, k: int) -> list[dict[str, Any]]:
    """Return the bins of the scores of the first `k` labels, lowest first."""
    counts, n_train_texts = evaluation.train_counts, evaluation.n_train_texts
    judged = judge(evaluation.predicted, evaluation.truth, counts, n_train_texts, MetricOptions(at=(k,)))
    return [each._asdict() for each in reliability(judged, k)]


def _labels(evaluation: Evaluation) -> dict[str, Any]:
    scores = [score for score in evaluation.label_scores() if score.n_true]
    enough = [score for score in scores if score.n_true >= ENOUGH_TEXTS]
    chosen = enough if len(enough) >= 2 * N_LABELS else scores
    n = min(N_LABELS, len(chosen) // 2)
    best = sorted(chosen, key=lambda score: (-score.f1, -score.n_true, score.label))[:n]
    worst = sorted(chosen, key=lambda score: (score.f1, -score.n_true, score.label))[:n]

    def row(score: LabelScore) -> dict[str, Any]:
        ids, names = evaluation.vocabulary.ids, evaluation.vocabulary.names
        return {"id": ids[score.label], "name": names[score.label], "f1": score.f1} | {
            key: value for key, value in score._asdict().items() if key != "label"
        }

    return {
        "among_first": SHOWN,
        "at_least_true_texts": ENOUGH_TEXTS if chosen is enough else 1,
        "best": [row(score) for score in best],
        "worst": [row(score) for score in worst],
    }


def _texts(evaluation: Evaluation) -> Iterator[dict[str, Any]]:
    """Yield a seeded sample of texts that have labels, in the order of the data."""
    labelled = np.flatnonzero(evaluation.truth.labels_per_text())
    drawn = np.random.default_rng(0).permutation(labelled)[:N_TEXTS]
    for row in np.sort(drawn).tolist():
        yield _text(evaluation, row)


def _text(evaluation: Evaluation, row: int) -> dict[str, Any]:
    """Return a text with its suggested labels and those that were missed."""
    names = evaluation.vocabulary.names
    true = set(evaluation.truth[row].tolist())
    labels = evaluation.predicted.labels[row, :SHOWN].tolist()
    scores = evaluation.predicted.scores[row, :SHOWN].tolist()
    suggested = [(label, score) for label, score in zip(labels, scores, strict=True) if label != NO_LABEL]
    fields = {name: str(evaluation.split.texts[name][row].as_py()) for name in evaluation.split.texts.column_names}
    text = fields[TEXT]
    return {
        "number": row + 1,
        **{name: fields.get(name, "") for name in RECORD_COLUMNS},
        "text": text if len(text) <= TEXT_CHARACTERS else text[:TEXT_CHARACTERS].rstrip() + " …",
        "suggested": [{"name": names[label], "score": score, "right": label in true} for label, score in suggested],
        "missed": [names[label] for label in sorted(true - set(labels))],
    }
