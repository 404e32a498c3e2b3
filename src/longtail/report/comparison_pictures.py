"""The pictures of a comparison as SVG; each method has one colour (`colour`, a number) in all of them.

cost_picture  a metric against what a method costs, on a logarithmic axis, with intervals
band_picture  a metric over the labels of a band, one bar per method
gain_picture  gains over the anchor with paired intervals, around a line at zero
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from longtail.report.pictures import (
    AXIS,
    CHARACTER,
    ROW,
    WIDTH,
    Frame,
    bar,
    line,
    log_scale,
    per_cent_axis,
    point,
    row_axis,
    row_text,
    svg,
    text,
)
from longtail.report.tables import gain, gain_text

COSTS = Frame(WIDTH, 260, 46, 12, 14, 44)
N_COLOURS = 8
"""Those of the page's style."""
TITLES = {"train_s": "training, s", "ms_per_text": "ms per text"}
LONGEST_NAME = 18
LINE_HEIGHT = 14
DOT = 5
"""The radius of a point."""
POINT = 6
"""The room that a point takes, and its distance to its name."""


def cost_picture(runs: Sequence[dict[str, Any]], cost: str, metric: str) -> str:
    """Draw `metric` of each run against one of its costs."""
    frame = COSTS
    spent = [max(run["costs"][cost], 1e-3) for run in runs]
    intervals = [run["results"]["intervals"]["metrics"][metric] for run in runs]
    low, high = min(one["low"] for one in intervals), max(one["high"] for one in intervals)
    pad = 0.08 * max(high - low, 0.01)
    low, high = low - pad, high + pad
    x = log_scale(min(spent) / 2, max(spent) * 2, frame.left, frame.end)

    def y(value: float) -> float:
        return float(frame.floor - (value - low) / (high - low) * (frame.floor - frame.top))

    steps = (1, 2, 5) if max(spent) < 30 * min(spent) else (1,)
    ticks = (step * 10.0**power for power in range(-3, 9) for step in steps)
    x_ticks = {x(tick): f"{tick:,g}" for tick in ticks if frame.left <= x(tick) <= frame.end - 10}
    y_ticks = {y(tick): f"{100 * tick:g}" for tick in _round_ticks(low, high)}
    elements = frame.axes(x_ticks, y_ticks, (TITLES[cost], f"{metric}, per cent"))
    points = [(x(cost), y(one["value"])) for cost, one in zip(spent, intervals, strict=True)]
    taken: list[tuple[float, float, float]] = []
    for run, interval, (at, height) in zip(runs, intervals, points, strict=True):
        elements.append(line(f"whisker w{run['colour']}", at, at, y(interval["low"]), y(interval["high"])))
        elements.append(point(f"m{run['colour']}", at, height, DOT))
        drawn = (height, *range(int(y(interval["high"])), int(y(interval["low"])), LINE_HEIGHT // 2))
        taken += [(at - POINT, at + POINT, place) for place in drawn]
    elements += _names([run["name"] for run in runs], points, taken, frame)
    return svg(frame.width, frame.height, f"{metric} against {TITLES[cost]}", elements)


def band_picture(runs: Sequence[dict[str, Any]], metric: str, band: str) -> str:
    """Draw a bar of `metric` over the labels of a band for each run."""
    elements: list[str] = []
    for number, run in enumerate(runs):
        value, interval = (each["bands"][band][metric] for each in (run["results"], run["results"]["intervals"]))
        elements += bar(number * ROW.height, run["name"], value, interval, kind=f"m{run['colour']}")
    floor = len(runs) * ROW.height
    return svg(WIDTH, floor + AXIS, f"{metric}, {band} labels", [*elements, *per_cent_axis(floor, metric)])


def gain_picture(runs: Sequence[dict[str, Any]], metric: str, anchor: str) -> str:
    """Draw the gains of runs over the anchor; all of them must have one."""
    gains = [gain(run["difference"]["metrics"][metric]) for run in runs]
    most = 1.1 * max(max(abs(one.low), abs(one.high), 0.1) for one in gains)

    def x(value: float) -> float:
        return float(ROW.left + (ROW.end - ROW.left) * (value + most) / (2 * most))

    elements = []
    for number, (run, one) in enumerate(zip(runs, gains, strict=True)):
        top = number * ROW.height
        middle = top + (ROW.top + ROW.height - ROW.bottom) / 2
        elements += row_text(top, run["name"], gain_text(one))
        elements.append(line("zero", x(0), x(0), top + ROW.top - 2, top + ROW.height - ROW.bottom + 2))
        elements.append(line(f"whisker w{run['colour']}", x(one.low), x(one.high), middle, middle))
        elements.append(point(f"m{run['colour']}", x(one.value), middle, DOT))
    floor = len(runs) * ROW.height
    ticks = {x(100 * tick): f"{100 * tick:+g}" if tick else "0" for tick in _round_ticks(-most / 100, most / 100)}
    axis = row_axis(floor, ticks, f"gain over {anchor}, per cent")
    return svg(WIDTH, floor + AXIS, f"Gain in {metric} over {anchor}", [*elements, *axis])


def _names(
    names: Sequence[str], points: Sequence[tuple[float, float]], taken: list[tuple[float, float, float]], frame: Frame
) -> Iterator[str]:
    """Yield the names of points: each beside its point or, if that place is taken, as near as there is room.

    `taken` are the places that are not free: left and right end, and height.
    """
    shifts = sorted(range(-20, 21), key=abs)
    for name, (x, y) in zip(names, points, strict=True):
        width = min(len(name), LONGEST_NAME) * CHARACTER
        places = [
            (start, start + width, y + shift * LINE_HEIGHT / 2)
            for shift, start in product(shifts, (x + POINT + 3, x - POINT - 3 - width, frame.left, frame.end - width))
            if start >= frame.left and start + width <= frame.end
            if frame.top + 4 <= y + shift * LINE_HEIGHT / 2 <= frame.floor - 4
        ]
        free = (
            place
            for place in places
            if all(place[0] > end or place[1] < start or abs(place[2] - at) >= LINE_HEIGHT for start, end, at in taken)
        )
        start, end, at = next(free, places[0])
        taken.append((start, end, at))
        if abs(at - y) > LINE_HEIGHT or max(start - x, x - end) > 2 * POINT:
            yield line("leader", x, min(max(x, start), end), y, at)
        yield text(start, at + 4, name, kind="name", room=width)


def _round_ticks(low: float, high: float) -> list[float]:
    """Return whole steps of a per cent, four to eight of them."""
    steps = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    step = next((one for one in steps if (high - low) / one <= 7), 10.0)
    first = int(low / step) + (1 if low > 0 else 0)
    return [round(step * number, 4) for number in range(first, int(high / step) + 1)]
