"""Results as one JSON file and one Markdown table a data set, best nDCG@5 first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from features import EVAL_SPLIT

_SHARES = ("P@1", "P@3", "P@5", "nDCG@5", "PSP@5", "R@20")
_COLUMNS = {
    "train_s": "train s", "batch_ms": "batch ms/text", "single_ms": "single ms", "model_mb": "MB",
    "peak_mb": "peak MB", "rss_loaded_mb": "of it before training",
}  # fmt: skip
_DIGITS = {"batch_ms": 3, "single_ms": 2}
_DISTURBED_CORES = 0.1
_NOTES = """\
Accuracy in per cent (F1@5 as a fraction), best nDCG@5 first; *new*: only texts that do not occur word for word in
train. How each column is measured: the README beside `linear.py`. †: other processes used more than a tenth
of a core meanwhile, so the times of that row are too long.
"""


def write_tables(out: Path) -> str:
    """Gather out/linear/<data>/<system>.json into out/linear.json and out/linear.md; returns the Markdown."""
    results = [json.loads(file.read_text()) for file in sorted(out.glob("linear/*/*.json"))]
    (out / "linear.json").write_text(json.dumps(results, indent=1) + "\n")
    present = {result["data"] for result in results}
    parts = ["# Linear systems\n", _NOTES]
    for data in [name for name in EVAL_SPLIT if name in present]:
        parts.append(_table([result for result in results if result["data"] == data]))
    parts.append(_runs(results))
    markdown = "\n".join(parts)
    (out / "linear.md").write_text(markdown)
    return markdown


def _table(results: list[dict[str, Any]]) -> str:
    results = sorted(results, key=lambda result: -result.get("accuracy", {"all": {"nDCG@5": -1}})["all"]["nDCG@5"])
    facts = results[0]["features"]
    counts = f"{facts['n_train']:,} + {facts['n_eval']:,} texts, {facts['n_labels']:,} labels"
    head = ["system", *_SHARES, "F1@5", "new P@1", "new nDCG@5", *_COLUMNS.values(), "run"]
    lines = [f"## {results[0]['data']} {results[0]['split']}\n", f"{counts}, {facts['n_features']:,} features\n"]
    lines += [_line(head), _line(["---"] * len(head))]
    return "\n".join(lines + [_line(_cells(result)) for result in results]) + "\n"


def _cells(result: dict[str, Any]) -> list[str]:
    name = result["name"] if result["status"] == "ok" else f"{result['name']}: **{result['status']}**"
    cells = [f"{name} †" if result["others_cores"] > _DISTURBED_CORES else name]
    if "accuracy" in result:
        every, new = result["accuracy"]["all"], result["accuracy"]["new"]
        cells += [f"{100 * every[metric]:.1f}" for metric in _SHARES]
        cells += [f"{every['F1@5']:.3f}", *(f"{100 * new[metric]:.1f}" for metric in ("P@1", "nDCG@5"))]
    else:
        cells += ["–"] * (len(_SHARES) + 3)
    measured = result["measured"]
    for column in _COLUMNS:
        cells.append(f"{measured[column]:.{_DIGITS.get(column, 0)}f}" if column in measured else "–")
    return [*cells, result["run"]["id"]]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _runs(results: list[dict[str, Any]]) -> str:
    runs = {result["run"]["id"]: result["run"] for result in results}
    lines = ["## Runs\n"]
    for name, run in sorted(runs.items(), key=lambda item: item[1]["date"]):
        machine = run["machine"]
        lines.append(
            f"- {name}: {run['date']}, commit {run['commit']}, {run['n_threads']} threads on {machine['cpu']} "
            f"({machine['cores']} cores, {machine['memory_gb']} GB), Python {machine['python']}, "
            f"limits {run['time_limit_s']:.0f} s and {run['memory_limit_gb']:.0f} GB a system"
        )
    return "\n".join(lines) + "\n"
