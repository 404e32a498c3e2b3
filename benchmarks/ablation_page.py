"""The page about ablations and its pictures, from the results that are kept."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ablation_groups import GROUPS, Claim, Group, key_of

PAGE = Path(__file__).parent.parent / "docs" / "ablations.md"
SHOWN = ("P@1", "P@3", "P@5", "nDCG@5", "R@1", "R@3", "R@5")
HARDLY = 0.3
"""Points that are hardly a difference."""
SMOOTHED = 10
"""Losses that are seen as one."""


def write(kept: Path) -> None:
    """The page, from the folder of kept results."""
    parts = [HEAD]
    for name, group in GROUPS.items():
        file = kept / f"{name}.json"
        parts.append(f"## {group.title}\n\n{group.note}\n")
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        keys = {key_of(row, seed, *group.rows[row]) for row in group.rows for seed in range(10)}
        runs = [run for run in runs if run["key"] in keys]
        if not runs:
            parts.append("Not run yet.\n")
            continue
        parts += [
            table(group, runs),
            verdicts(group, runs),
            f"{group.found}\n",
            picture(f"ablations-{name}", "P@1 by row", bars(group, runs)),
        ]
        if group.curves:
            parts.append(picture(f"ablations-{name}-losses", "Loss by step", curves(group, runs)))
            parts.append(head_start(group, runs))
    PAGE.write_text("\n".join(parts))


HEAD = """# Ablations

The papers' own ablations on eurlex57k: trained on train (45,000 texts), measured on dev (6,000 texts; labels that train
lacks count as misses), e5-small with the first 64 tokens and 3 epochs unless a row says otherwise; mean over
seeds, ± standard deviation. Small budgets: rows can be compared with each other, not with the best figures of the
[results](results.md). Figures of the papers are on other data and with larger encoders: only signs can be compared.
`benchmarks/ablations.py` runs them again; its results are kept in `benchmarks/results/ablations/`.
"""


def table(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    lines = ["| | " + " | ".join(SHOWN) + " | seeds |", "|---|" + "---|" * (len(SHOWN) + 1)]
    for row in group.rows:
        own = [run for run in runs if run["row"] == row]
        if own:
            cells = [_mean([run[metric] for run in own if metric in run]) for metric in SHOWN]
            lines.append(f"| {row} | {' | '.join(cells)} | {len(own)} |")
    return "\n".join(lines) + "\n"


def verdicts(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    """What the paper found, beside what was found here."""
    by = {(run["row"], run["seed"]): run for run in runs}
    lines = ["| the paper: better | than | there | here | seeds above 0 | agrees |", "|---|---|---|---|---|---|"]
    for claim in group.claims:
        seeds = [s for s in range(10) if (claim.better, s) in by and (claim.worse, s) in by]
        gains = [by[claim.better, s][claim.metric] - by[claim.worse, s][claim.metric] for s in seeds]
        if gains:
            above = sum(gain > 0 for gain in gains)
            here = f"{statistics.mean(gains):+.2f} {claim.metric}"
            cells = (
                claim.better,
                claim.worse,
                claim.there or "–",
                here,
                f"{above} of {len(gains)}",
                agrees(claim, gains),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n" if len(lines) > 2 else ""


def agrees(claim: Claim, gains: Sequence[float]) -> str:
    """Whether what was found here is what the paper found; one seed is never enough to say so."""
    if len(gains) < 2 or not claim.there:
        return "–"
    if claim.equal:
        return "yes" if abs(statistics.mean(gains)) <= HARDLY else "no"
    signs = {gain > 0 for gain in gains}
    return "unclear" if len(signs) == 2 else "yes" if signs == {True} else "no"


def picture(name: str, says: str, drawn: str) -> str:
    """A picture beside the page, and the line that shows it."""
    file = PAGE.parent / "pictures" / f"{name}.svg"
    file.parent.mkdir(exist_ok=True)
    file.write_text(drawn)
    return f"![{says}](pictures/{file.name})\n"


def head_start(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    """How soon the better row of the first claim has the loss that the worse one ends with."""
    claim, told = group.claims[0], []
    for seed in sorted({run["seed"] for run in runs}):
        better, worse = (
            next(run["losses"] for run in runs if run["row"] == row and run["seed"] == seed)
            for row in (claim.better, claim.worse)
        )
        goal, smooth = _smooth(worse)[-1], _smooth(better)
        at = next((at for at, loss in enumerate(smooth) if loss <= goal), len(smooth))
        told.append(f"{at / len(smooth):.0%}")
    return (
        f"With {claim.better}, the loss that {claim.worse} ends with is there after {', '.join(told)} of the steps.\n"
    )


def _smooth(losses: Sequence[float]) -> list[float]:
    """Means of as many neighbouring losses as make noise small."""
    return [statistics.mean(losses[at : at + SMOOTHED]) for at in range(len(losses) - SMOOTHED + 1)]


def bars(group: Group, runs: Sequence[dict[str, Any]], metric: str = "P@1") -> str:
    """A metric of each row as SVG: a bar for the mean, a dot a seed."""
    found = {row: [run[metric] for run in runs if run["row"] == row] for row in group.rows}
    found = {row: values for row, values in found.items() if values}
    every = [value for values in found.values() for value in values]
    least, most = min(every) - 0.2 * (max(every) - min(every) + 1), max(every) + 0.1
    left, width, step = 300, 640, 26
    parts = []
    for number, (row, values) in enumerate(found.items()):
        at = [left + (width - left - 60) * (value - least) / (most - least) for value in values]
        mean, y = statistics.mean(at), 12 + step * number
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end" fill="#333">{row}</text>')
        parts.append(f'<rect x="{left}" y="{y}" width="{mean - left:.1f}" height="18" fill="#9cc5d3"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y + 9}" r="2.5" fill="#1f6f8b"/>' for x in at]
        label = f"{statistics.mean(values):.1f}"
        parts.append(f'<text x="{max(*at, mean) + 8:.1f}" y="{y + 13}" fill="#333">{label}</text>')
    return _svg(width, 20 + step * len(found), parts)


def curves(group: Group, runs: Sequence[dict[str, Any]]) -> str:
    """Losses by step as SVG, first seed."""
    width, height, left, top, bottom = 640, 320, 60, 16, 40
    first = {run["row"]: run["losses"] for run in runs if run["seed"] == 0 and run["losses"]}
    longest = max(map(len, first.values()))
    most = max(loss for losses in first.values() for loss in losses[1:])
    parts = []
    for number, (row, losses) in enumerate(first.items()):
        colour = ("#1f6f8b", "#c1440e", "#4f772d", "#6a4c93")[number % 4]
        points = " ".join(
            f"{left + (width - left - 16) * at / max(1, longest - 1):.1f},"
            f"{top + (height - top - bottom) * (1 - min(loss, most) / most):.1f}"
            for at, loss in enumerate(losses)
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.5" points="{points}"/>')
        parts.append(f'<text x="{width - 150}" y="{top + 16 + 18 * number}" fill="{colour}">{row}</text>')
    floor = height - bottom
    parts.append(f'<line x1="{left}" x2="{width - 16}" y1="{floor}" y2="{floor}" stroke="#888"/>')
    parts.append(f'<text x="{left}" y="{height - 10}" fill="#555">step 0 to {20 * (longest - 1):,}</text>')
    parts.append(
        f'<text x="6" y="{top + 10}" fill="#555">{most:.1f}</text><text x="6" y="{floor}" fill="#555">0</text>'
    )
    return _svg(width, height, parts)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    style = 'font-family="sans-serif" font-size="13"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {style}>{"".join(parts)}</svg>\n'


def _mean(values: Sequence[float]) -> str:
    if not values:
        return "–"
    if len(values) < 2:
        return f"{values[0]:.1f}"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"
