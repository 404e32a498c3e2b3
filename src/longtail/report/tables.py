"""The tables of a report, as cells of text for Markdown, the page and the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from longtail.tables import Table

FAMILIES = {
    "P": "right among the first k",
    "R": "of the true labels, found among the first k",
    "RP": "as P, out of as many as could be right",
    "F1": "P and R in one",
    "nDCG": "right ones, the earlier the better",
    "PSP": "right ones, rare labels count more",
    "PSnDCG": "the same, the earlier the better",
    "coverage": "labels that are found at least once",
    "micro-F1": "over all pairs of text and label",
    "micro-P": "of the suggested pairs, right",
    "micro-R": "of the true pairs, suggested",
    "macro-F1": "mean of the labels' F1",
    "ECE": "scores off the share right, 0 is best",
    "Brier": "squared error of scores, 0 is best",
}
BAND_FAMILIES = ("P", "R", "nDCG", "F1", "PSP", "coverage")
BAND_TITLES = {
    "head": "head, more than 100 training texts",
    "torso": "torso, 11 to 100",
    "tail": "tail, 1 to 10",
    "unseen": "unseen, none",
}


def percent(fraction: float) -> str:
    """Return a fraction in per cent with one digit: 0.8899 is 89.0."""
    return f"{100 * fraction:.1f}"


def with_interval(value: float, interval: Mapping[str, float] | None) -> str:
    """Return a fraction in per cent with its interval, if there is one."""
    return percent(value) + (f" ({percent(interval['low'])}–{percent(interval['high'])})" if interval else "")


class Gain(NamedTuple):
    """A gain over the anchor in per cent of its figure, with its paired interval."""

    value: float
    low: float
    high: float


def gain(difference: Mapping[str, Any]) -> Gain:
    """Return a difference to the anchor as a gain; the anchor's figure must not be 0."""
    value, low, high = (100 * difference[key] / difference["anchor"] for key in ("value", "low", "high"))
    return Gain(value, low, high)


def gain_text(gain: Gain, mark: str = "") -> str:
    """Return a gain with its interval, `+1.7 (+0.3 to +3.2)`."""
    return f"{gain.value:+.1f}{mark} ({gain.low:+.1f} to {gain.high:+.1f})"


def list_lengths(results: dict[str, Any]) -> list[int]:
    """Return the k of all P@k, in the order in which they were measured."""
    return [int(name.split("@")[1]) for name in results["metrics"] if name.startswith("P@")]


def main_length(results: dict[str, Any]) -> int:
    """Return the one k that summaries show: 5, or the largest if 5 was not measured."""
    lengths = list_lengths(results)
    return 5 if 5 in lengths else max(lengths)


def overall_table(results: dict[str, Any], explained: bool = True) -> Table:
    """Return all metrics over all labels: one row per family, one column per list length."""
    lengths = list_lengths(results)
    drawn = results.get("intervals", {}).get("metrics", {})
    families = dict.fromkeys(name.split("@")[0] for name in results["metrics"] if "@" in name)
    suffixes = dict.fromkeys(name.partition(" ")[2] for name in results["metrics"] if "@" in name)
    rows = []
    for family in families:
        for suffix in suffixes:
            names = [f"{family}@{k}{' ' if suffix else ''}{suffix}" for k in lengths]
            if all(name in results["metrics"] for name in names):
                title = f"{family}@k {suffix}".strip()
                about = FAMILIES.get(family, "") if explained else ""
                cells = [with_interval(results["metrics"][name], drawn.get(name)) for name in names]
                rows.append([f"{title}: {about}" if about else title, *cells])
    return Table(["", *(f"k = {k}" for k in lengths)], rows)


def published_table(report: dict[str, Any]) -> Table:
    """Return the figures of a run beside those of the paper that it is to reproduce, in per cent."""
    rows = [[metric, f"{ours:.2f}", f"{published:.2f}"] for metric, ours, published in report["published"]]
    return Table(["", "here", "published"], rows)


def threshold_table(results: dict[str, Any]) -> Table | None:
    """Return the metrics of the labels that reach the threshold; None without one."""
    if results["threshold"] is None:
        return None
    drawn = results.get("intervals", {}).get("metrics", {})
    rows = [
        [f"{name}: {FAMILIES[name]}", with_interval(value, drawn.get(name))]
        for name, value in results["metrics"].items()
        if "@" not in name
    ]
    return Table(["", f"score ≥ {results['threshold']:.3g}"], rows)


def band_table(results: dict[str, Any], intervals: bool = True) -> Table:
    """Return the main metrics by how many training texts a label has."""
    k = main_length(results)
    drawn = results.get("intervals", {}).get("bands", {}) if intervals else {}
    names = [f"{family}@{k}" for family in BAND_FAMILIES]
    rows = [
        [
            BAND_TITLES[band],
            f"{results['n_labels_by_band'][band]:,}",
            f"{results['n_texts_by_band'][band]:,}",
            *(with_interval(values[name], drawn.get(band, {}).get(name)) for name in names),
        ]
        for band, values in results["bands"].items()
    ]
    return Table(["labels by training texts", "labels", "texts", *names], rows)


def new_table(results: dict[str, Any]) -> Table | None:
    """Return the main metrics with and without texts that occur word for word in training; None if not measured."""
    new = results.get("without_seen_texts")
    if new is None:
        return None
    k = main_length(results)
    lengths = list_lengths(results)
    names = list(dict.fromkeys([f"P@{lengths[0]}", f"P@{k}", f"R@{k}", f"F1@{k}", f"nDCG@{k}", f"PSP@{k}"]))
    rows = [
        [title, f"{measured['n_texts']:,}", *(percent(measured["metrics"][name]) for name in names)]
        for title, measured in (("all texts", results), ("without texts that occur word for word in training", new))
    ]
    return Table(["", "texts", *names], rows)


def reliability_table(bins: list[dict[str, Any]]) -> Table:
    """Return how many labels are right by their score."""
    rows = [
        [f"{each['low']:.2f}–{each['high']:.2f}", f"{each['n']:,}", f"{each['mean_score']:.3f}", percent(each["right"])]
        for each in bins
    ]
    return Table(["score", "labels", "mean score", "right, per cent"], rows)


def why_sentence(why: Mapping[str, Any]) -> str:
    """Return what spoke for a label that was wrong, or missed."""
    words = ", ".join(why["words"]) or "no word"
    score = "not proposed" if why["score"] is None else f"score {why['score']:.2f}"
    return f"{why['kind']}: {why['name']} ({score}), for which speak {words}"


def confusion_table(pairs: list[dict[str, Any]]) -> Table:
    """Return pairs of labels that are taken for each other."""
    rows = [
        [f"{pair['missed']} → {pair['suggested']}", *(f"{pair[key]:,}" for key in ("n", "n_missed", "n_wrong"))]
        for pair in pairs
    ]
    return Table(["missed → suggested instead", "texts", "first missed in", "second wrong in"], rows)


def baseline_table(report: dict[str, Any]) -> Table | None:
    """Return the main metrics beside those of the baseline; None where it was not measured."""
    baseline, results = report["baseline"], report["results"]
    if baseline is None:
        return None
    k, first = main_length(results), list_lengths(results)[0]
    names = dict.fromkeys([f"P@{first}", f"P@{k}", f"R@{k}", f"nDCG@{k}", f"PSP@{k}"])
    rows = []
    for name in names:
        one = baseline["difference"][name]
        interval = f"{100 * one['value']:+.1f} ({100 * one['low']:+.1f} to {100 * one['high']:+.1f})"
        rows.append([name, percent(results["metrics"][name]), percent(baseline["metrics"][name]), interval])
    n_texts = max(report["data"]["n_texts"], 1)
    times = [1000 * one["predict_s"] / n_texts for one in (results, baseline)]
    rows.append(["ms per text in a batch", *(f"{ms:.2f}" for ms in times), ""])
    return Table(["", report["model"]["method"], baseline["method"], "difference"], rows)


def label_table(labels: list[dict[str, Any]]) -> Table:
    """Return the counts and F1 of single labels."""
    rows = [
        [row["name"], *(f"{row[key]:,}" for key in ("n_train", "n_true", "n_predicted", "n_right")), percent(row["f1"])]
        for row in labels
    ]
    return Table(["label", "training texts", "true", "suggested", "right", "F1"], rows)


def count_table(data: dict[str, Any]) -> Table:
    """Return the sizes of the data."""
    rows = [
        ["training texts", f"{data['n_train_texts']:,}"],
        ["labels in training", f"{data['n_train_labels']:,}"],
        ["evaluated texts", f"{data['n_texts']:,}"],
        ["labels per text", f"{data['labels_per_text']:.2f}"],
        ["labels in the evaluated texts", f"{data['n_labels']:,}"],
        ["of these unknown to the model", f"{data['n_unknown_labels']:,}"],
        ["of the texts only the beginning read", f"{data.get('share_of_cut_texts', 0):.1%}"],
        ["texts without labels (left out)", f"{data['n_texts_without_labels']:,}"],
    ]
    return Table(["", ""], rows)


def model_table(report: dict[str, Any]) -> Table:
    """Return what was evaluated, and where."""
    model, machine, results = report["model"], report["environment"], report["results"]
    constants = "; ".join(f"a = {each['a']:g}, b = {each['b']:g}" for each in results["propensities"])
    size = None if model["bytes"] is None else f"{model['bytes'] / 1e6:,.1f} MB"
    trained = model["trained_on"]
    speed = f"{1000 * results['predict_s'] / max(report['data']['n_texts'], 1):.2f} ms per text in a batch"
    rows: list[tuple[str, str | None]] = [
        ("model", f"{model['method']}, {model['kind']}"),
        ("saved in", model["path"] or None),
        ("size", size),
        ("weights", None if model["n_weights"] is None else f"{model['n_weights']:,}"),
        ("features", None if model["n_features"] is None else f"{model['n_features']:,}"),
        ("seed", str(model["seed"])),
        ("held out of training", _held_out(trained["held_out"]) if trained.get("held_out") else None),
        ("prediction", speed),
        ("propensity constants", constants),
        ("versions", ", ".join(f"{name} {machine[name]}" for name in machine if name not in ("platform", "cores"))),
        ("machine", f"{machine['platform']}, {machine['cores']} cores"),
    ]
    return Table(["", ""], [[name, value] for name, value in rows if value is not None])


def _held_out(draw: dict[str, Any]) -> str:
    return f"{draw['share']:.0%} of the texts, {draw['at_most']:,} at most, drawn with seed {draw['seed']}"
