"""The figures of a comparison: every run on the same texts, with intervals, and beside one of them, the anchor.

    lists of each run (n_texts, k), truth  ->  plain data for JSON

The gain of a run X in a metric m is (m(X) − m(anchor)) / m(anchor): figures of different papers and data versions can
be compared by it where absolute ones cannot (X-BERT, table 4). The difference m(X) − m(anchor) has a paired interval:
both runs are measured on the same resampled texts, so what makes texts hard for both cancels out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from longtail.compare.runs import Entry, Found
from longtail.data.dataset import Dataset, Split
from longtail.evaluation import truth_for
from longtail.metrics import (
    BootstrapOptions,
    Interval,
    Intervals,
    MetricOptions,
    evaluate,
    intervals,
    paired_difference,
)
from longtail.progress import SILENT, Progress
from longtail.report.contents import changed_options, environment


def make_comparison(
    dataset: Dataset,
    split: str,
    evaluated: Split,
    entries: Sequence[Entry],
    found: Mapping[str, Found | str],
    anchor: str,
    options: MetricOptions,
    bootstrap: BootstrapOptions | None = None,
    folders: Mapping[str, Path] | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Everything that is shown of a comparison; `found` has what each run left, or why it failed."""
    train = dataset.train
    counts = train.labels.texts_per_label()
    seen = np.flatnonzero(counts)
    truth, _ = truth_for(train.vocabulary.take(seen), evaluated)
    given = truth, counts[seen], len(train), options
    bootstrap = bootstrap or BootstrapOptions()
    beside = found[anchor]
    runs = []
    with progress.step("intervals", len(entries), "runs") as advance:
        for entry in entries:
            run = {**_about(entry), "model": str((folders or {}).get(entry.name, ""))}
            one = found[entry.name]
            if isinstance(one, str):
                run["error"] = one
            else:
                run |= _measured(one, len(evaluated))
                run["results"] = evaluate(one.lists, *given).plain()
                drawn = intervals(one.lists, *given, bootstrap).plain()
                run["results"]["intervals"] = {part: drawn[part] for part in ("metrics", "bands")}
                if entry.name != anchor and isinstance(beside, Found):
                    run |= _beside(paired_difference(one.lists, beside.lists, *given, bootstrap), run["results"])
            runs.append(run)
            advance(1)
    return {
        "title": f"{len(entries)} methods on {dataset.name}, {split}",
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "data": {
            "name": dataset.name,
            "split": split,
            "n_train_texts": len(train),
            "n_labels": len(seen),
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


def _measured(found: Found, n_texts: int) -> dict[str, Any]:
    return {
        "costs": {
            **found.costs.plain(),
            "predict_s": found.predict_s,
            "predict_threads": found.threads,
            "ms_per_text": 1000 * found.predict_s / max(n_texts, 1),
            "model_bytes": found.model_bytes,
        }
    }


def _beside(difference: Intervals, own: Mapping[str, Any]) -> dict[str, Any]:
    """Difference and gain by metric, over all labels and by band."""

    def told(apart: Mapping[str, Interval], values: Mapping[str, float]) -> dict[str, Any]:
        return {name: _told(interval, values[name]) for name, interval in apart.items()}

    bands = {band: told(apart, own["bands"][band]) for band, apart in difference.bands.items()}
    return {"difference": {"metrics": told(difference.values, own["metrics"]), "bands": bands}}


def _told(interval: Interval, own: float) -> dict[str, Any]:
    anchor = own - interval.value
    return {
        "value": interval.value,
        "low": interval.low,
        "high": interval.high,
        "excludes_zero": interval.excludes_zero,
        "anchor": anchor,
        "gain": interval.value / anchor if anchor > 0 else None,
    }
