"""Draw the picture of the README, accuracy against training time beside the peers: python tools/make_picture.py

    benchmarks/results/linear.json  ->  docs/pictures/accuracy-and-time.svg

A test compares the file with what this draws, so the picture cannot claim what was not measured.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "linear.json"
PICTURE = ROOT / "docs" / "pictures" / "accuracy-and-time.svg"
METRIC = "nDCG@5"
LEFT_OUT = {"longtail-xr-linear", "longtail-parabel", "longtail-bonsai"}  # other people's settings on our solver
NAMES = {
    "longtail-own-features": "linear",
    "longtail-3-seeds": "linear, 3 seeds",
    "longtail": "linear, beam 20",
    "longtail-fast": "linear/fast",
    "omikuji-bonsai": "omikuji Bonsai",
    "pecos-3-trees": "PECOS, 3 trees",
    "pecos": "PECOS XR-Linear",
}
SIDES = {
    ("tibkat-gnd", "omikuji-bonsai"): "left",
    ("yso-finna-en", "longtail-3-seeds"): "left",
    ("yso-finna-en", "longtail-own-features"): "left",
    ("yso-finna-en", "omikuji-bonsai"): "below",
}
"""Where a name stands, if not to the right of its point."""
WIDTH, HEIGHT, TOP, BOTTOM = 900, 400, 92, 338
STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #24292f; }
.title { font-size: 17px; font-weight: 600; }
.panel { font-size: 13px; font-weight: 600; }
.small, .tick { font-size: 12px; fill: #57606a; }
.grid { stroke: #d0d7de; stroke-width: 1; }
.peer { fill: #8c959f; }
.ours { fill: #0f766e; }
text.ours { font-weight: 600; }
text.peer { fill: #57606a; }
.name { font-size: 12px; stroke: #ffffff; stroke-width: 4px; paint-order: stroke; stroke-linejoin: round; }
.background { fill: #ffffff; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .small, .tick, text.peer { fill: #9da7b1; }
  .grid { stroke: #30363d; }
  .peer { fill: #7d8590; }
  .ours { fill: #2dd4bf; }
  .name { stroke: #0d1117; }
  .background { fill: #0d1117; }
}
"""


@dataclass(frozen=True)
class Panel:
    """One data set: where it is drawn, and the ranges of its axes."""

    data: str
    title: str
    left: float
    right: float
    seconds: tuple[float, float]
    scores: tuple[float, float]
    ticks: tuple[int, ...]


PANELS = (
    Panel(
        data="tibkat-gnd",
        title="tibkat-gnd: 90,452 library records, 35,116 labels",
        left=56,
        right=440,
        seconds=(7, 700),
        scores=(43, 55),
        ticks=(44, 46, 48, 50, 52, 54),
    ),
    Panel(
        data="yso-finna-en",
        title="yso-finna-en: 540,125 book titles, 25,322 labels",
        left=506,
        right=890,
        seconds=(11, 700),
        scores=(36.8, 42.8),
        ticks=(37, 38, 39, 40, 41, 42),
    ),
)


def picture() -> str:
    """Return the whole SVG file."""
    rows = json.loads(RESULTS.read_text("utf-8"))
    shapes = "\n".join(line for panel in PANELS for line in _panel(panel, rows))
    title = "Accuracy against training time"
    caption = "Two CPU cores. Higher is better, further left is faster. All but “linear” read the same plain TF-IDF."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'role="img" aria-label="{METRIC} against seconds of training, longtail beside its peers">\n'
        f"<style>{STYLE}</style>\n"
        f'<rect class="background" width="{WIDTH}" height="{HEIGHT}" rx="6"/>\n'
        f'<text class="title" x="20" y="30">{title}</text>\n'
        f'<text class="small" x="20" y="50">{caption}</text>\n'
        f'<circle class="ours" cx="728" cy="25" r="6"/><text class="ours" x="740" y="29.5">longtail</text>\n'
        f'<circle class="peer" cx="818" cy="25" r="5"/><text class="peer" x="830" y="29.5">peers</text>\n'
        f"{shapes}\n</svg>\n"
    )


def _panel(panel: Panel, rows: list[dict[str, Any]]) -> Iterator[str]:
    across, up = _scales(panel)
    yield f'<text class="panel" x="{panel.left - 36}" y="{TOP - 14}">{panel.title}</text>'
    for tick in panel.ticks:
        yield f'<line class="grid" x1="{panel.left}" x2="{panel.right}" y1="{up(tick):.1f}" y2="{up(tick):.1f}"/>'
        yield f'<text class="tick" x="{panel.left - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick}</text>'
    for seconds in (10, 30, 100, 300):
        if panel.seconds[0] < seconds < panel.seconds[1]:
            place = f'x="{across(seconds):.1f}" y="{BOTTOM + 18}"'
            yield f'<text class="tick" {place} text-anchor="middle">{seconds} s</text>'
    middle = (panel.left + panel.right) / 2
    label = f"seconds of training (log scale); vertical: {METRIC} in per cent"
    yield f'<text class="small" x="{middle}" y="{BOTTOM + 42}" text-anchor="middle">{label}</text>'
    for row in rows:
        if row["data"] == panel.data and row["system"] not in LEFT_OUT and row["status"] == "ok":
            x, y = across(row["measured"]["train_s"]), up(100 * row["accuracy"]["all"][METRIC])
            yield from _point(x, y, row["system"], SIDES.get((panel.data, row["system"]), "right"))


def _point(x: float, y: float, system: str, side: str) -> Iterator[str]:
    whose = "ours" if system.startswith("longtail") else "peer"
    anchor, right, down = {"right": ("start", 11, 4.5), "left": ("end", -11, 4.5), "below": ("middle", 0, 19)}[side]
    place = f'x="{x + right:.1f}" y="{y + down:.1f}" text-anchor="{anchor}"'
    yield f'<text class="name {whose}" {place}>{NAMES[system]}</text>'
    yield f'<circle class="{whose}" cx="{x:.1f}" cy="{y:.1f}" r="{6 if whose == "ours" else 5}"/>'


def _scales(panel: Panel) -> tuple[Callable[[float], float], Callable[[float], float]]:
    low, high = map(math.log, panel.seconds)
    worst, best = panel.scores

    def across(seconds: float) -> float:
        return panel.left + (panel.right - panel.left) * (math.log(seconds) - low) / (high - low)

    def up(score: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * (score - worst) / (best - worst)

    return across, up


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
