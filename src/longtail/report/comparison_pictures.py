"""The pictures of a comparison as SVG; each method has one colour (`colour`, a number) in all of them.

cost_picture        a metric against what a method costs, on a logarithmic axis, with intervals
grouped_picture     a metric by band, one bar per method
difference_picture  differences to the anchor with paired intervals, around a line at zero
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from longtail.report.pictures import Frame, bar, line, log_scale, svg, text

COSTS = Frame(460, 300, 46, 16, 14, 44)
ROWS = Frame(640, 22, 150, 120, 2, 6)
"""One row of a chart with a row per method."""
GAP = 12
N_COLOURS = 8
"""Those of the page's style."""
BANDS = ("head", "torso", "tail", "unseen")
TITLES = {"train_s": "training, s", "ms_per_text": "ms per text"}


def cost_picture(runs: Sequence[dict[str, Any]], cost: str, metric: str) -> str:
    """Draw `metric` of each run against one of its costs."""
    frame = COSTS
    spent = [max(run["costs"][cost], 1e-3) for run in runs]
    intervals = [run["results"]["intervals"]["metrics"][metric] for run in runs]
    low, high = min(one["low"] for one in intervals), max(one["high"] for one in intervals)
    pad = 0.08 * max(high - low, 0.01)
    low, high = low - pad, high + pad
    x = log_scale(min(spent) / 2.5, max(spent) * 4, frame.left, frame.end)

    def y(value: float) -> float:
        return float(frame.floor - (value - low) / (high - low) * (frame.floor - frame.top))

    steps = (1, 2, 5) if max(spent) < 30 * min(spent) else (1,)
    ticks = (step * 10.0**power for power in range(-3, 9) for step in steps)
    x_ticks = {x(tick): f"{tick:,g}" for tick in ticks if frame.left <= x(tick) <= frame.end}
    elements = frame.axes(x_ticks, {y(tick): f"{100 * tick:g}" for tick in _round_ticks(low, high)}, TITLES[cost])
    taken: list[tuple[float, float]] = []
    for number in sorted(range(len(runs)), key=lambda number: intervals[number]["value"]):
        interval, at, colour = intervals[number], x(spent[number]), runs[number]["colour"]
        elements.append(line(f"whisker w{colour}", at, at, y(interval["low"]), y(interval["high"])))
        elements.append(_point(colour, at, y(interval["value"])))
        height = y(interval["value"]) + 4
        while any(abs(height - other) < 13 and abs(at - place) < 110 for place, other in taken):
            height -= 13
        taken.append((at, height))
        anchor, shift = ("end", -9) if at > frame.width * 0.7 else ("start", 9)
        elements.append(text(at + shift, height, runs[number]["name"], anchor, "name"))
    return svg(frame.width, frame.height, f"{metric} against {TITLES[cost]}", elements)


def grouped_picture(runs: Sequence[dict[str, Any]], metric: str) -> str:
    """Draw bars of `metric` by band, one per run."""
    elements: list[str] = []
    top = 0
    for band in BANDS:
        present = [run for run in runs if metric in run["results"]["bands"].get(band, {})]
        if not present:
            continue
        elements.append(text(0, top + 14, band, kind="name"))
        for run in present:
            value, interval = (each["bands"][band][metric] for each in (run["results"], run["results"]["intervals"]))
            elements += bar(ROWS, top, run["name"], value, interval, kind=f"m{run['colour']}")
            top += ROWS.height
        top += GAP
    return svg(ROWS.width, max(top, ROWS.height), f"{metric} by band", elements)


def difference_picture(runs: Sequence[dict[str, Any]], metrics: Sequence[str]) -> str:
    """Draw differences to the anchor in points; `runs` are those that have some."""
    differences = [run["difference"]["metrics"][metric] for run in runs for metric in metrics]
    most = max(max(abs(one["low"]), abs(one["high"]), 0.001) for one in differences) * 1.1

    def x(value: float) -> float:
        return float(ROWS.left + (ROWS.end - ROWS.left) * (value + most) / (2 * most))

    elements, top = [], 0
    for metric in metrics:
        elements.append(text(0, top + 14, metric, kind="name"))
        for run in runs:
            value, low, high = (run["difference"]["metrics"][metric][key] for key in ("value", "low", "high"))
            middle = top + ROWS.height / 2 - 1
            elements.append(text(ROWS.left - 8, middle + 4, run["name"], "end"))
            elements.append(line(f"whisker w{run['colour']}", x(low), x(high), middle, middle))
            elements.append(_point(run["colour"], x(value), middle))
            shown = f"{100 * value:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"
            elements.append(text(ROWS.end + 8, middle + 4, shown))
            top += ROWS.height
        top += GAP
    return svg(ROWS.width, top, "Differences to the anchor", [line("zero", x(0), x(0), 0, top - 8), *elements])


def _point(colour: int, x: float, y: float) -> str:
    return f'<circle class="m{colour}" cx="{x:.1f}" cy="{y:.1f}" r="5"/>'


def _round_ticks(low: float, high: float) -> list[float]:
    """Return whole steps of a per cent, five to ten of them."""
    step = next(one for one in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 1.0) if (high - low) / one <= 8)
    first = int(low / step) + (1 if low > 0 else 0)
    return [round(step * number, 4) for number in range(first, int(high / step) + 1)]
