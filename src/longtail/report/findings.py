"""What a report says, in words: how good the model is, where it fails, and what it is good for.

report (plain data)  ->  sentences, most important first
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from longtail.report.tables import list_lengths, main_length, percent

SURE = 0.9
"""Suggestions that are right so often may be taken without a look."""
GOOD_CALIBRATION = 0.05
MUCH_CUT = 0.1


def findings(report: dict[str, Any]) -> list[str]:
    """Return the sentences of a report."""
    results = report["results"]
    k = main_length(results)
    return [
        _quality(results, k),
        *_beside_baseline(report.get("baseline"), f"nDCG@{k}"),
        *_automatic(report.get("precision_recall", [])),
        *_rare(results, k),
        *_scores(results, k),
        *_gaps(report),
        _cost(report),
    ]


def _quality(results: Mapping[str, Any], k: int) -> str:
    first = list_lengths(dict(results))[0]
    metrics = results["metrics"]
    begin = (
        f"The first suggestion is right for {percent(metrics['P@1'])} % of the texts"
        if first == 1
        else f"{percent(metrics[f'P@{first}'])} % of the first {first} suggestions are right"
    )
    return f"{begin}, and the first {k} hold {percent(metrics[f'R@{k}'])} % of the true labels."


def _beside_baseline(baseline: Mapping[str, Any] | None, metric: str) -> list[str]:
    if not baseline:
        return []
    difference = baseline["difference"][metric]
    points = f"{metric} {100 * difference['value']:+.1f} points"
    interval = f"({100 * difference['low']:+.1f} to {100 * difference['high']:+.1f})"
    name = baseline["method"]
    if not difference["certain"]:
        return [f"There is no clear difference to {name}, which learned from the same texts: {points} {interval}."]
    better = "better" if difference["value"] > 0 else "worse"
    return [f"It is {better} than {name}, which learned from the same texts: {points} {interval}."]


def _automatic(curve: list[Mapping[str, float]]) -> list[str]:
    sure = [at for at in curve if at["precision"] >= SURE]
    if not sure:
        return (
            [f"At no score are {SURE:.0%} of the suggestions right: a person should look at all of them."]
            if curve
            else []
        )
    best = max(sure, key=lambda at: at["recall"])
    return [
        f"Suggestions that score {best['score']:.2f} or more are right {percent(best['precision'])} % of the time; "
        f"they are {percent(best['recall'])} % of the true labels."
    ]


def _rare(results: Mapping[str, Any], k: int) -> list[str]:
    bands, name = results["bands"], f"R@{k}"
    if "head" not in bands or "tail" not in bands:
        return []
    head, tail = (percent(bands[band][name]) for band in ("head", "tail"))
    return [
        f"Of the assignments of frequent labels {head} % are found, of labels with at most ten training texts {tail} %."
    ]


def _scores(results: Mapping[str, Any], k: int) -> list[str]:
    error = results["metrics"].get(f"ECE@{k}")
    if error is None:
        return []
    what = (
        "can be read as probabilities" if error <= GOOD_CALIBRATION else "are no probabilities: use them for order only"
    )
    return [f"Scores {what} (they are off by {percent(error)} points on average)."]


def _gaps(report: Mapping[str, Any]) -> list[str]:
    data = report["data"]
    sentences = []
    if data["n_unknown_labels"]:
        sentences.append(
            f"{data['n_unknown_labels']:,} of the {data['n_labels']:,} labels of the texts are unknown to the model "
            "and always missed."
        )
    cut = data.get("share_of_cut_texts", 0)
    if cut:
        advice = "; let the encoder read more of them" if cut > MUCH_CUT else ""
        sentences.append(f"Of {cut:.0%} of the texts it reads only the beginning{advice}.")
    return sentences


def _cost(report: Mapping[str, Any]) -> str:
    ms = 1000 * report["results"]["predict_s"] / max(report["data"]["n_texts"], 1)
    size = report["model"]["bytes"]
    return f"A text takes {ms:.2f} ms in a batch" + (f"; the model is {size / 1e6:,.1f} MB on disk." if size else ".")
