"""The figures of a comparison: every run on the same texts, with intervals, and in relation to one run, the anchor.

    lists of each run (n_texts, k), truth  ->  plain data for JSON

The gain of a run X in a metric m is (m(X) − m(anchor)) / m(anchor); gains can be compared across papers and versions
of the data, absolute figures cannot (X-BERT, table 4). The difference m(X) − m(anchor) has a paired interval: both runs
are measured on the same resampled texts, so what makes texts hard for both cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longtail.compare.runs import ComparedData, Entry, RunResult
from longtail.evaluation import truth_for
from longtail.labels.model_labels import labels_of_model
from longtail.metrics import BootstrapOptions, Interval, Intervals, MetricOptions, evaluate, intervals
from longtail.report.contents import changed_options, environment
from longtail.run.progress import SILENT, Progress
from longtail.types import TopK


def make_comparison(
    data: ComparedData,
    entries: Sequence[Entry],
    results: Mapping[str, RunResult | str],
    *,
    anchor: str,
    options: MetricOptions,
    bootstrap: BootstrapOptions | None = None,
    folders: Mapping[str, Path] | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Return everything that is shown of a comparison, as plain data for JSON.

    Args:
        data: The training texts and the evaluated ones.
        entries: The compared methods.
        results: What each run left, or why it failed, by the name of its entry.
        anchor: The name of the entry that gains are measured against.
        options: Which metrics.
        bootstrap: How intervals are drawn.
        folders: The model folder of each entry, to be named.
        progress: Reports how many runs are measured.
    """
    dataset, evaluated, train = data.dataset, data.evaluated, data.dataset.train
    labels = labels_of_model(train, train.official)
    truth, _ = truth_for(labels.vocabulary, evaluated)
    bootstrap = bootstrap or BootstrapOptions()
    counts, n_texts, beside = labels.train_counts, len(train), results[anchor]

    def draw(lists: TopK, minus: TopK | None = None) -> Intervals:
        return intervals(lists, truth, counts, n_texts, options, bootstrap, minus=minus)

    runs = []
    with progress.step("intervals", len(entries), "runs") as advance:
        for entry in entries:
            run = {**_about(entry), "model": str((folders or {}).get(entry.name, ""))}
            result = results[entry.name]
            if isinstance(result, str):
                run["error"] = result
            else:
                run |= _measured(result, len(evaluated))
                run["results"] = evaluate(result.lists, truth, counts, n_texts, options).plain()
                drawn = draw(result.lists).plain()
                run["results"]["intervals"] = {part: drawn[part] for part in ("metrics", "bands")}
                if entry.name != anchor and isinstance(beside, RunResult):
                    run |= _beside(draw(result.lists, minus=beside.lists), run["results"])
            runs.append(run)
            advance(1)
    return {
        "title": f"{len(entries)} methods on {dataset.name}, {data.split}",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "name": dataset.name,
            "split": data.split,
            "n_train_texts": len(train),
            "n_labels": len(labels.scored),
            "n_texts": len(evaluated),
            "held_out": dataset.facts.get("held_out"),
        },
        "relative_to": anchor,
        "runs": runs,
        "bootstrap": bootstrap.plain(),
        "environment": environment(),
    }


def _about(entry: Entry) -> dict[str, Any]:
    options = entry.model.options.plain()
    return {
        "name": entry.name,
        "method": entry.model.name,
        "options": options,
        "changed_options": changed_options(options, entry.model.options_class().plain()),
        "error": None,
    }


def _measured(result: RunResult, n_texts: int) -> dict[str, Any]:
    return {
        "costs": {
            **result.costs.plain(),
            "predict_s": result.predict_s,
            "predict_threads": result.threads,
            "ms_per_text": 1000 * result.predict_s / max(n_texts, 1),
            "model_bytes": result.model_bytes,
        }
    }


def _beside(difference: Intervals, measured: Mapping[str, Any]) -> dict[str, Any]:
    """Return difference and gain by metric, over all labels and by band."""

    def gains(drawn: Mapping[str, Interval], values: Mapping[str, float]) -> dict[str, Any]:
        return {name: _gain(interval, values[name]) for name, interval in drawn.items()}

    bands = {band: gains(drawn, measured["bands"][band]) for band, drawn in difference.bands.items()}
    return {"difference": {"metrics": gains(difference.values, measured["metrics"]), "bands": bands}}


def _gain(interval: Interval, value: float) -> dict[str, Any]:
    anchor = value - interval.value
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "excludes_zero": interval.excludes_zero,
        "anchor": anchor,
        "gain": interval.value / anchor if anchor > 0 else None,
    }
