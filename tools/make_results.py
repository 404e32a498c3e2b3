"""Write the measured tables into docs/results.md: python tools/make_results.py

Everything between the two marks is made from benchmarks/results/*.json. A test compares the page with what this makes,
so it cannot claim what was not measured.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE, RESULTS = ROOT / "docs" / "results.md", ROOT / "benchmarks" / "results"
START, END = "<!-- measured: made by tools/make_results.py -->\n", "<!-- end of measured -->\n"
DATA = {
    "tibkat-gnd": "library catalogue, German and English",
    "eurlex57k": "EU law, with titles",
    "yso-finna-en": "book titles",
    "debtags": "software descriptions",
}
ONLY_IN_RESULTS = {"longtail-xr-linear", "longtail-parabel", "longtail-bonsai"}
COLUMNS = {"train_s": ("train s", 0), "batch_ms": ("batch ms/text", 3), "single_ms": ("single ms", 2)}
COLUMNS |= {"model_mb": ("model MB", 0), "peak_mb": ("peak MB", 0)}
SHARES = ("P@1", "P@5", "nDCG@5", "PSP@5")


def page(text: str) -> str:
    """Return the page with the tables of the committed results."""
    before, rest = text.split(START)
    return before + START + section() + END + rest.split(END)[1]


def section() -> str:
    """Return all tables as Markdown."""
    return "\n".join(["", *_linear(), *_scaling(), *_small()]) + "\n"


def _linear() -> Iterable[str]:
    results = read_results("linear")
    for data, what in DATA.items():
        rows = [row for row in results if row["data"] == data and row["system"] not in ONLY_IN_RESULTS]
        rows.sort(key=lambda row: -row["accuracy"]["all"]["nDCG@5"] if "accuracy" in row else 1)
        facts = rows[0]["features"]
        counts = f"{facts['n_train']:,} training texts, {facts['n_labels']:,} labels"
        yield f"### {data}\n\n{what[0].upper() + what[1:]}; measured on {rows[0]['split']}. {counts}.\n"
        yield from _table(["", *SHARES, *(name for name, _ in COLUMNS.values())], map(_system, rows))
        yield from _without_seen_texts([row for row in rows if "accuracy" in row])


def _without_seen_texts(rows: list[dict[str, Any]]) -> Iterable[str]:
    if any(row["accuracy"]["new"] != row["accuracy"]["all"] for row in rows):
        unseen = [(row["name"], row["accuracy"]["new"]) for row in rows]
        figures = "; ".join(f"{name} {100 * new['P@1']:.1f} / {100 * new['nDCG@5']:.1f}" for name, new in unseen)
        yield f"P@1 / nDCG@5 without the texts that also occur word for word in train: {figures}.\n"


def _system(row: dict[str, Any]) -> list[str]:
    name = f"**{row['name']}**" if row["system"].startswith("longtail") else row["name"]
    shares = [f"{100 * row['accuracy']['all'][share]:.1f}" if "accuracy" in row else "–" for share in SHARES]
    status = "" if row["status"] == "ok" else f" ({row['status']})"
    measured = row["measured"]
    return [name + status, *shares, *(_number(measured.get(c), digits) for c, (_, digits) in COLUMNS.items())]


def _number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:.{max(digits, int(value < 10))}f}"


def _scaling() -> Iterable[str]:
    results = read_results("scaling")
    yield "## How training time grows\n"
    for method, measured in results["methods"].items():
        for along in ("texts", "labels"):
            power = f"seconds grow as assignments to the power of {measured['exponent'][along]}"
            yield f"`{method}` on a growing part of the {along} of {results['data']}: {power}.\n"
            head = ["texts", "labels", "assignments", "train s", "peak MB"]
            keys = ("n_texts", "n_labels", "n_assignments")
            rows = measured[along]
            cells = ([*(f"{row[k]:,}" for k in keys), f"{row['train_s']:.1f}", f"{row['peak_mb']:.0f}"] for row in rows)
            yield from _table(head, cells)


def _small() -> Iterable[str]:
    tfidf = read_results("tfidf")["data"]
    yield "## TF-IDF beside scikit-learn\n"
    yield "The same options, entries equal to 1e-6; two cores, medians of three runs:\n"
    head = ["", "longtail s", "scikit-learn s", "times faster", "longtail MB", "scikit-learn MB"]
    rows = []
    for data, measured in tfidf.items():
        ours, theirs = measured["longtail"], measured["scikit-learn"]
        seconds = f"{ours['fit_s']:.2f}", f"{theirs['fit_s']:.2f}", f"{measured['times_faster']:.1f}"
        rows.append([data, *seconds, f"{ours['memory_mb']:.0f}", f"{theirs['memory_mb']:.0f}"])
    yield from _table(head, rows)
    startup = read_results("startup")
    ratio, seconds = startup["ratio"], startup["median_s"]["longtail predict"]
    yield "## Starting up\n"
    yield f"`longtail predict` on a saved model takes {seconds:.2f} s, {ratio:.2f} times the import of its libraries."


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterable[str]:
    yield from (f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
    yield ""


def read_results(name: str) -> Any:
    """Return the results of a benchmark."""
    return json.loads((RESULTS / f"{name}.json").read_text())


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
