"""The tables of a report, as cells of text: what Markdown and the page have in common."""

from __future__ import annotations

from typing import Any, NamedTuple

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
    "macro-F1": "mean of the labels' F1",
}
BAND_FAMILIES = ("P", "R", "nDCG", "F1", "PSP", "coverage")
BAND_TITLES = {
    "head": "head, more than 100 training texts",
    "torso": "torso, 11 to 100",
    "tail": "tail, 1 to 10",
    "unseen": "unseen, none",
}


class Table(NamedTuple):
    """Cells of text; the first column is of words, the others of numbers."""

    head: list[str]
    rows: list[list[str]]
    best: frozenset[tuple[int, int]] = frozenset()
    """Row and column of cells that stand out."""


def percent(fraction: float) -> str:
    """A fraction as people compare it: 0.8899 is 89.0."""
    return f"{100 * fraction:.1f}"


def list_lengths(results: dict[str, Any]) -> list[int]:
    """The k of all P@k, as they were asked for."""
    return [int(name.split("@")[1]) for name in results["metrics"] if name.startswith("P@")]


def main_length(results: dict[str, Any]) -> int:
    """The k to look at where one must do: 5, or the longest."""
    lengths = list_lengths(results)
    return 5 if 5 in lengths else max(lengths)


def overall_table(results: dict[str, Any], explained: bool = True) -> Table:
    """All metrics over all labels: a row a family, a column a list length."""
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
                cells = [_cell(results["metrics"][name], drawn.get(name)) for name in names]
                rows.append([f"{title}: {about}" if about else title, *cells])
    return Table(["", *(f"k = {k}" for k in lengths)], rows)


def band_table(results: dict[str, Any], intervals: bool = True) -> Table:
    """The main metrics by how often a label was seen in training."""
    k = main_length(results)
    drawn = results.get("intervals", {}).get("bands", {}) if intervals else {}
    names = [f"{family}@{k}" for family in BAND_FAMILIES]
    rows = [
        [
            BAND_TITLES[band],
            f"{results['n_labels_by_band'][band]:,}",
            f"{results['n_texts_by_band'][band]:,}",
            *(_cell(values[name], drawn.get(band, {}).get(name)) for name in names),
        ]
        for band, values in results["bands"].items()
    ]
    return Table(["labels by training texts", "labels", "texts", *names], rows)


def new_table(results: dict[str, Any]) -> Table | None:
    """The main metrics with and without texts that occur word for word in training."""
    new = results.get("without_seen_texts")
    if new is None:
        return None
    k = main_length(results)
    lengths = list_lengths(results)
    names = list(dict.fromkeys([f"P@{lengths[0]}", f"P@{k}", f"R@{k}", f"F1@{k}", f"nDCG@{k}", f"PSP@{k}"]))
    rows = [
        [title, f"{found['n_texts']:,}", *(percent(found["metrics"][name]) for name in names)]
        for title, found in (("all texts", results), ("without texts that occur word for word in training", new))
    ]
    return Table(["", "texts", *names], rows)


def label_table(labels: list[dict[str, Any]]) -> Table:
    """How single labels fared."""
    rows = [
        [row["name"], *(f"{row[key]:,}" for key in ("n_train", "n_true", "n_predicted", "n_right")), percent(row["f1"])]
        for row in labels
    ]
    return Table(["label", "training texts", "true", "suggested", "right", "F1"], rows)


def count_table(data: dict[str, Any]) -> Table:
    """The data in numbers."""
    rows = [
        ["training texts", f"{data['n_train_texts']:,}"],
        ["labels in training", f"{data['n_train_labels']:,}"],
        ["evaluated texts", f"{data['n_texts']:,}"],
        ["labels a text", f"{data['labels_per_text']:.2f}"],
        ["labels in the evaluated texts", f"{data['n_labels']:,}"],
        ["of these unknown to the model", f"{data['n_unknown_labels']:,}"],
        ["texts without labels (left out)", f"{data['n_texts_without_labels']:,}"],
    ]
    return Table(["", ""], rows)


def model_table(report: dict[str, Any]) -> Table:
    """What was evaluated, with what."""
    model, found, results = report["model"], report["environment"], report["results"]
    constants = "; ".join(f"a = {each['a']:g}, b = {each['b']:g}" for each in results["propensities"])
    size = None if model["bytes"] is None else f"{model['bytes'] / 1e6:,.1f} MB"
    trained = model["trained_on"]
    speed = f"{1000 * results['predict_s'] / max(report['data']['n_texts'], 1):.2f} ms a text in a batch"
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
        ("versions", ", ".join(f"{name} {found[name]}" for name in found if name not in ("platform", "cores"))),
        ("machine", f"{found['platform']}, {found['cores']} cores"),
    ]
    return Table(["", ""], [[name, value] for name, value in rows if value is not None])


def _held_out(draw: dict[str, Any]) -> str:
    return f"{draw['share']:.0%} of the texts, {draw['at_most']:,} at most, drawn with seed {draw['seed']}"


def _cell(value: float, interval: dict[str, float] | None) -> str:
    if interval is None:
        return percent(value)
    return f"{percent(value)} ({percent(interval['low'])}–{percent(interval['high'])})"
