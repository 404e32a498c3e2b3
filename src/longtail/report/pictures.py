"""The pictures of a report as SVG, drawn by hand so that a page needs no library; colours come from its style.

frequency_picture  training texts of each label by rank, both axes logarithmic, head, torso and tail shaded
band_picture       how many of the true labels are found, by band, with intervals
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from longtail.report.tables import main_length, with_interval

BANDS = (("head", float("inf")), ("torso", 101), ("tail", 11))
"""Each with the number of texts that its labels stay below."""

Scale = Callable[[float], float]
"""From a value to its place in a picture."""


class Frame(NamedTuple):
    """The size of a picture, and the margins around its plot."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int

    @property
    def end(self) -> int:
        """The right edge of the plot."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """The lower edge of the plot."""
        return self.height - self.bottom

    def axes(self, x: Mapping[float, str], y: Mapping[float, str], title: str) -> list[str]:
        """Draw a grid with a label at each place of `x` and `y`, and the title of the x axis."""
        elements = []
        for at, label in x.items():
            elements += [line("grid", at, at, self.top, self.floor), text(at, self.floor + 16, label, "middle")]
        for at, label in y.items():
            elements += [line("grid", self.left, self.end, at, at), text(self.left - 7, at + 4, label, "end")]
        return [*elements, text((self.left + self.end) / 2, self.height - 6, title, "middle")]


FREQUENCY = Frame(560, 300, 64, 16, 26, 44)
BARS = Frame(560, 34, 76, 120, 4, 10)
"""One row of bars."""


def frequency_picture(curve: Sequence[Sequence[int]]) -> str:
    """Draw the training texts per label, from [rank, texts] points with the most frequent first."""
    n_labels, most = curve[-1][0], curve[0][1]
    frame = FREQUENCY
    x = log_scale(0.85, n_labels * 1.2, frame.left, frame.end)
    y = log_scale(0.8, max(most, 1) * 1.3, frame.floor, frame.top)
    elements = []
    edges = [next((rank for rank, texts in curve if texts < most_texts), None) for _, most_texts in BANDS]
    starts = [x(rank) if rank is not None else x(n_labels) for rank in edges]
    for (name, _), start, end in zip(BANDS, starts, [*starts[1:], x(n_labels)], strict=True):
        if end > start:
            elements.append(box(f"band {name}", start, frame.top, end - start, frame.floor - frame.top))
        if end > start + 30:
            elements.append(text((start + end) / 2, frame.top - 8, name, "middle", "name"))
    ticks = [{scale(tick): f"{tick:,}" for tick in powers(top)} for scale, top in ((x, n_labels), (y, most))]
    elements += frame.axes(ticks[0], ticks[1], "labels, most frequent first")
    points = " ".join(f"{x(rank):.1f},{y(max(texts, 1)):.1f}" for rank, texts in curve)
    elements.append(f'<polyline class="curve" points="{points}"/>')
    side = (frame.top + frame.floor) / 2
    elements.append(f'<text transform="translate(14 {side}) rotate(-90)" text-anchor="middle">training texts</text>')
    return svg(frame.width, frame.height, "Training texts of each label", elements)


def band_picture(results: dict[str, Any]) -> str:
    """Draw bars of R@k by band."""
    name = f"R@{main_length(results)}"
    intervals = results.get("intervals", {})
    rows = [("all", results["metrics"][name], intervals.get("metrics", {}).get(name))]
    for band, values in results["bands"].items():
        rows.append((band, values[name], intervals.get("bands", {}).get(band, {}).get(name)))
    elements: list[str] = []
    for number, (band, value, interval) in enumerate(rows):
        elements += bar(BARS, number * BARS.height, band, value, interval, kind=f"bar {band}", name_kind="name")
    return svg(BARS.width, len(rows) * BARS.height + 4, f"{name} by band", elements)


def bar(
    frame: Frame,
    top: float,
    name: str,
    value: float,
    interval: Mapping[str, float] | None,
    *,
    kind: str,
    name_kind: str = "",
) -> list[str]:
    """Draw a row of a bar chart: a name, the bar of a fraction with its interval, and both as numbers."""
    room, height = frame.end - frame.left, frame.height - frame.bottom
    middle = top + frame.top + height / 2
    elements = [
        text(frame.left - 8, middle + 4, name, "end", name_kind),
        box("rail", frame.left, top + frame.top, room, height, 3),
        box(kind, frame.left, top + frame.top, room * value, height, 3),
    ]
    if interval is not None:
        low, high = (frame.left + room * interval[end] for end in ("low", "high"))
        elements.append(line("whisker", low, high, middle, middle))
    return [*elements, text(frame.end + 8, middle + 4, with_interval(value, interval))]


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "") -> str:
    """Draw a text whose start, middle or end is at x."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'


def line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    """Draw a line."""
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def box(kind: str, x: float, y: float, width: float, height: float, radius: int = 0) -> str:
    """Draw a rectangle; the style gives its colour by `kind`."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="{radius}"/>'


def svg(width: int, height: float, title: str, elements: Sequence[str]) -> str:
    """Return a picture of these elements."""
    inside = "".join(elements)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}"><title>{title}</title>{inside}</svg>'


def log_scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return the scale of a logarithmic axis from `low` at `start` to `high` at `end`."""
    per_unit = (end - start) / (math.log(high) - math.log(low))
    return lambda value: start + (math.log(value) - math.log(low)) * per_unit


def powers(most: int) -> list[int]:
    """Return 1, 10, 100, … up to `most`."""
    return [10**power for power in range(int(math.log10(max(most, 1))) + 1)]
