"""The pictures of a comparison as SVG; each method has one colour (`colour`, a number) in all of them.

cost_picture        a metric against what a method costs, on a logarithmic axis, with intervals
grouped_picture     a metric by band, a bar a method
difference_picture  differences to the anchor with paired intervals, around a line at zero
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from longtail.report.pictures import LogScale, box, svg
from longtail.report.tables import percent

WIDTH, HEIGHT = 460, 300
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 14, 44
WIDE, NAMES, ROW = 640, 150, 22
N_COLOURS = 8
"""Those of the page's style."""
BANDS = ("head", "torso", "tail", "unseen")
TITLES = {"train_s": "training, s", "ms_per_text": "ms a text"}


def cost_picture(runs: Sequence[dict[str, Any]], cost: str, metric: str) -> str:
    """`metric` of each run against one of its costs."""
    spent = [max(run["costs"][cost], 1e-3) for run in runs]
    drawn = [run["results"]["intervals"]["metrics"][metric] for run in runs]
    low, high = min(one["low"] for one in drawn), max(one["high"] for one in drawn)
    pad = 0.08 * max(high - low, 0.01)
    low, high = low - pad, high + pad
    x = LogScale(min(spent) / 2.5, max(spent) * 4, LEFT, WIDTH - RIGHT)
    floor = HEIGHT - BOTTOM

    def y(value: float) -> float:
        return float(floor - (value - low) / (high - low) * (floor - TOP))

    parts = []
    for tick in _round_ticks(low, high):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{y(tick) + 4:.1f}" text-anchor="end">{100 * tick:g}</text>')
    between = (1, 2, 5) if max(spent) < 30 * min(spent) else (1,)
    for tick in (step * 10.0**power for power in range(-3, 9) for step in between):
        at = x(tick)
        if LEFT <= at <= WIDTH - RIGHT:
            parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{floor}"/>')
            parts.append(f'<text x="{at:.1f}" y="{floor + 16}" text-anchor="middle">{tick:,g}</text>')
    beside = sorted(range(len(runs)), key=lambda number: drawn[number]["value"])
    taken: list[tuple[float, float]] = []
    for number in beside:
        own, at = drawn[number], x(spent[number])
        colour = runs[number]["colour"]
        parts.append(_line(f"whisker w{colour}", at, at, y(own["low"]), y(own["high"])))
        parts.append(f'<circle class="m{colour}" cx="{at:.1f}" cy="{y(own["value"]):.1f}" r="5"/>')
        line = y(own["value"]) + 4
        while any(abs(line - other) < 13 and abs(at - place) < 110 for place, other in taken):
            line -= 13
        taken.append((at, line))
        anchor, shift = ("end", -9) if at > WIDTH * 0.7 else ("start", 9)
        name = escape(runs[number]["name"])
        parts.append(f'<text class="name" x="{at + shift:.1f}" y="{line:.1f}" text-anchor="{anchor}">{name}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{TITLES[cost]}</text>')
    return svg(WIDTH, HEIGHT, f"{metric} against {TITLES[cost]}", parts)


def grouped_picture(runs: Sequence[dict[str, Any]], metric: str) -> str:
    """Bars of `metric` by band, one a run."""
    room = WIDE - NAMES - 120
    parts: list[str] = []
    top = 0
    for band in BANDS:
        if not any(band in run["results"]["bands"] for run in runs):
            continue
        parts.append(f'<text class="name" x="0" y="{top + 14}">{band}</text>')
        for run in runs:
            value = run["results"]["bands"].get(band, {}).get(metric)
            if value is None:
                continue
            own = run["results"]["intervals"]["bands"][band][metric]
            middle = top + ROW / 2 - 1
            parts.append(f'<text x="{NAMES - 8}" y="{middle + 4}" text-anchor="end">{escape(run["name"])}</text>')
            parts.append(box("rail", NAMES, top + 2, room, ROW - 6, 3))
            parts.append(box(f"m{run['colour']}", NAMES, top + 2, room * value, ROW - 6, 3))
            low, high = (NAMES + room * own[end] for end in ("low", "high"))
            parts.append(_line("whisker", low, high, middle, middle))
            told = f"{percent(value)} ({percent(own['low'])}–{percent(own['high'])})"
            parts.append(f'<text x="{NAMES + room + 8}" y="{middle + 4}">{told}</text>')
            top += ROW
        top += 12
    return svg(WIDE, max(top, ROW), f"{metric} by band", parts)


def difference_picture(runs: Sequence[dict[str, Any]], metrics: Sequence[str]) -> str:
    """Differences to the anchor in points; `runs` are those that have some."""
    apart = [run["difference"]["metrics"][metric] for run in runs for metric in metrics]
    most = max(max(abs(one["low"]), abs(one["high"]), 0.001) for one in apart) * 1.1
    room = WIDE - NAMES - 120

    def x(value: float) -> float:
        return float(NAMES + room * (value + most) / (2 * most))

    parts, top = [], 0
    for metric in metrics:
        parts.append(f'<text class="name" x="0" y="{top + 14}">{escape(metric)}</text>')
        for run in runs:
            own = run["difference"]["metrics"][metric]
            middle = top + ROW / 2 - 1
            parts.append(f'<text x="{NAMES - 8}" y="{middle + 4}" text-anchor="end">{escape(run["name"])}</text>')
            parts.append(_line(f"whisker w{run['colour']}", x(own["low"]), x(own["high"]), middle, middle))
            parts.append(f'<circle class="m{run["colour"]}" cx="{x(own["value"]):.1f}" cy="{middle}" r="5"/>')
            told = f"{100 * own['value']:+.1f} ({100 * own['low']:+.1f} to {100 * own['high']:+.1f})"
            parts.append(f'<text x="{NAMES + room + 8}" y="{middle + 4}">{told}</text>')
            top += ROW
        top += 12
    parts.insert(0, _line("zero", x(0), x(0), 0, top - 8))
    return svg(WIDE, top, "Differences to the anchor", parts)


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def _round_ticks(low: float, high: float) -> list[float]:
    """Whole steps of a per cent, five to ten of them."""
    step = next(one for one in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0) if (high - low) / one <= 8)
    first = int(low / step) + (1 if low > 0 else 0)
    return [round(step * number, 4) for number in range(first, int(high / step) + 1)]
