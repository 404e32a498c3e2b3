"""What a comparison says, in words: who is best, who differs from the anchor, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail.report.tables import BAND_TITLES, gain, main_length, percent, with_interval

RARE = ("tail", "torso")
"""Bands of rare labels; the first that is there is spoken of."""
COSTS = {
    "train_s": ("trains fastest", "s", 1.0),
    "ms_per_text": ("tags fastest", "ms per text", 1.0),
    "model_bytes": ("is the smallest", "MB", 1e6),
}


def verdict(comparison: dict[str, Any]) -> list[str]:
    """Return sentences on the finished runs; none if there are fewer than two."""
    done = [run for run in comparison["runs"] if not run["error"]]
    if len(done) < 2:
        return []
    k = main_length(done[0]["results"])
    metric = f"nDCG@{k}"
    best = max(done, key=lambda run: run["results"]["metrics"][metric])
    figure = with_interval(best["results"]["metrics"][metric], best["results"]["intervals"]["metrics"][metric])
    return [
        f"{best['name']} has the highest {metric}: {figure}.",
        *_beside_anchor(done, metric, comparison["relative_to"]),
        *_rare(done, f"F1@{k}"),
        _cheapest(done),
    ]


def _beside_anchor(done: Sequence[dict[str, Any]], metric: str, anchor: str) -> list[str]:
    """Return which runs are better or worse than the anchor for certain, and which may not differ from it."""
    differences = {run["name"]: run["difference"]["metrics"][metric] for run in done if "difference" in run}
    groups: dict[str, list[str]] = {"better": [], "worse": [], "no clear difference": []}
    for name, difference in differences.items():
        shown = f"{name} ({gain(difference).value:+.1f} %)" if difference["gain"] is not None else name
        certain = "better" if difference["value"] > 0 else "worse"
        groups[certain if difference["excludes_zero"] else "no clear difference"].append(shown)
    listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in groups.items() if names)
    return [f"Gain over {anchor} in {metric} – {listed}."] if listed else []


def _rare(done: Sequence[dict[str, Any]], metric: str) -> list[str]:
    """Return who is best on rare labels."""
    for band in RARE:
        values = {run["name"]: run["results"]["bands"].get(band, {}).get(metric) for run in done}
        known = {name: value for name, value in values.items() if value is not None}
        if known:
            best = max(known, key=lambda name: known[name])
            return [
                f"On rare labels ({BAND_TITLES[band]} training texts) {best} is best: {metric} {percent(known[best])}."
            ]
    return []


def _cheapest(done: Sequence[dict[str, Any]]) -> str:
    """Return who costs least in each way."""
    cheapest: dict[str, list[str]] = {}
    for cost, (does, unit, size) in COSTS.items():
        best = min(done, key=lambda run: run["costs"][cost])
        cheapest.setdefault(best["name"], []).append(f"{does} ({best['costs'][cost] / size:.2g} {unit})")
    return "; ".join(f"{name} {' and '.join(words)}" for name, words in cheapest.items()) + "."
