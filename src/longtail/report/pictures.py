"""The pictures of a report as SVG, drawn by hand so that a page needs no library; colours come from its style.

frequency_picture    training texts of each label by rank, both axes logarithmic, head, torso and tail shaded
band_picture         how many of the true labels are found, by band, with intervals
precision_recall_picture  precision against recall, from the highest score down
reliability_picture  how many labels are right by their score, and how many have such a score

All are as wide as a phone, so that their letters keep their size there; a wide page puts several side by side. A row of
a chart has its name and its figures in one line and what is drawn below it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from longtail.notebook import shorten
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

    def axes(self, x: Mapping[float, str], y: Mapping[float, str], titles: tuple[str, str]) -> list[str]:
        """Draw a grid with a label at each place of `x` and `y`, and the titles of both axes."""
        elements = []
        for at, label in x.items():
            elements += [line("grid", at, at, self.top, self.floor), text(at, self.floor + 16, label, "middle")]
        for at, label in y.items():
            elements += [line("grid", self.left, self.end, at, at), text(self.left - 7, at + 4, label, "end")]
        elements.append(text((self.left + self.end) / 2, self.height - 6, titles[0], "middle"))
        middle = (self.top + self.floor) / 2
        turned = (
            f'<text transform="translate(13 {middle:.1f}) rotate(-90)" text-anchor="middle">{escape(titles[1])}</text>'
        )
        return [*elements, turned]


WIDTH = 320
CHARACTER = 7.4
"""An estimate of the width of a letter, on the safe side."""
FREQUENCY = Frame(WIDTH, 240, 64, 14, 26, 44)
RELIABILITY = Frame(WIDTH, 300, 46, 14, 62, 44)
PRECISION_RECALL = Frame(WIDTH, 260, 46, 14, 22, 44)
BARS_HEIGHT = 30
"""Of the bars above the plot of reliability."""
ROW = Frame(WIDTH, 38, 10, 10, 20, 8)
"""One row of a chart: a line of text, and a bar below it."""


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
    elements += frame.axes(ticks[0], ticks[1], ("labels, most frequent first", "training texts"))
    points = " ".join(f"{x(rank):.1f},{y(max(texts, 1)):.1f}" for rank, texts in curve)
    elements.append(f'<polyline class="curve" points="{points}"/>')
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
        elements += bar(number * ROW.height, band, value, interval, kind=f"bar {band}")
    floor = len(rows) * ROW.height
    return svg(WIDTH, floor + AXIS, f"{name} by band", [*elements, *per_cent_axis(floor, name)])


def reliability_picture(bins: Sequence[Mapping[str, Any]]) -> str:
    """Draw the share of right labels against the score, bin by bin, with the number of labels in bars above it."""
    frame, most = RELIABILITY, max(each["n"] for each in bins)

    def x(score: float) -> float:
        return frame.left + (frame.end - frame.left) * score

    def y(share: float) -> float:
        return frame.floor - (frame.floor - frame.top) * share

    elements = [text(frame.left, 14, f"labels by score, at most {most:,}")]
    for each in bins:
        width, height = x(each["high"]) - x(each["low"]) - 1, round(BARS_HEIGHT * each["n"] / most, 1)
        elements.append(box("bar", x(each["low"]), frame.top - 8 - height, width, height))
    quarters = [place / 4 for place in range(5)]
    ticks = {x(place): f"{place:g}" for place in quarters}, {y(place): f"{100 * place:g}" for place in quarters}
    elements += frame.axes(ticks[0], ticks[1], ("score", "right, per cent"))
    elements.append(line("zero", x(0), x(1), y(0), y(1)))
    points = [(x(each["mean_score"]), y(each["right"])) for each in bins]
    curve = " ".join(f"{at:.1f},{height:.1f}" for at, height in points)
    elements.append(f'<polyline class="curve" points="{curve}"/>')
    elements += [point("m0", at, height, 4) for at, height in points]
    return svg(frame.width, frame.height, "Share of right labels by score", elements)


def precision_recall_picture(curve: Sequence[Mapping[str, float]]) -> str:
    """Draw precision against recall of all suggestions above a score, from the highest score down."""
    frame = PRECISION_RECALL

    def x(share: float) -> float:
        return frame.left + (frame.end - frame.left) * share

    def y(share: float) -> float:
        return frame.floor - (frame.floor - frame.top) * share

    quarters = [place / 4 for place in range(5)]
    ticks = {x(place): f"{100 * place:g}" for place in quarters}, {y(place): f"{100 * place:g}" for place in quarters}
    elements = frame.axes(ticks[0], ticks[1], ("recall, per cent", "precision, per cent"))
    points = [(x(each["recall"]), y(each["precision"])) for each in curve]
    line_points = " ".join(f"{at:.1f},{height:.1f}" for at, height in points)
    elements.append(f'<polyline class="curve" points="{line_points}"/>')
    for place in sorted({0, len(curve) // 2, len(curve) - 1}):
        (at, height), score = points[place], curve[place]["score"]
        elements += [
            point("m0", at, height, 4),
            text(min(at + 7, frame.end - 30), max(height - 7, frame.top), f"{score:.2f}"),
        ]
    return svg(frame.width, frame.height, "Precision against recall", elements)


def bar(top: float, name: str, value: float, interval: Mapping[str, float] | None, *, kind: str) -> list[str]:
    """Draw a row of a bar chart: a name, a fraction with its interval, and a bar of both."""
    room, height = ROW.end - ROW.left, ROW.height - ROW.top - ROW.bottom
    elements = [
        *row_text(top, name, with_interval(value, interval)),
        box("rail", ROW.left, top + ROW.top, room, height, 3),
        box(kind, ROW.left, top + ROW.top, room * value, height, 3),
    ]
    if interval is not None:
        low, high = (ROW.left + room * interval[end] for end in ("low", "high"))
        middle = top + ROW.top + height / 2
        elements.append(line("whisker", low, high, middle, middle))
    return elements


def row_text(top: float, name: str, figures: str) -> list[str]:
    """Draw the name of a row, shortened to the room beside its figures, and the figures."""
    room = ROW.end - ROW.left - (len(figures) + 1) * CHARACTER
    return [
        text(ROW.left, top + 14, name, kind="name", room=room),
        text(ROW.end, top + 14, figures, "end"),
    ]


AXIS = 38
"""The height of an axis below rows."""


def per_cent_axis(top: float, title: str) -> list[str]:
    """Draw an axis from 0 to 100 per cent below the rows of a bar chart."""
    ticks = {ROW.left + (ROW.end - ROW.left) * share / 100: str(share) for share in range(0, 101, 25)}
    return row_axis(top, ticks, f"{title}, per cent")


def row_axis(top: float, ticks: Mapping[float, str], title: str) -> list[str]:
    """Draw the labels of an axis below the rows of a chart, and its title."""
    labels = [
        text(min(at, WIDTH - len(label) * CHARACTER / 2), top + 10, label, "middle") for at, label in ticks.items()
    ]
    return [*labels, text(WIDTH / 2, top + 28, title, "middle", room=WIDTH)]


def text(x: float, y: float, content: str, anchor: str = "start", kind: str = "", room: float = math.inf) -> str:
    """Draw a text whose start, middle or end is at x; one that is wider than `room` is shortened."""
    fitting = content if len(content) * CHARACTER <= room else shorten(content, max(int(room / CHARACTER), 1))
    whole = "" if fitting == content else f"<title>{escape(content)}</title>"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(fitting)}{whole}</text>'


def line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    """Draw a line."""
    return f'<line class="{kind}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def point(kind: str, x: float, y: float, radius: int) -> str:
    """Draw a point."""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def box(kind: str, x: float, y: float, width: float, height: float, radius: int = 0) -> str:
    """Draw a rectangle; the style gives its colour by `kind`."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="{radius}"/>'


def svg(width: int, height: float, title: str, elements: Sequence[str]) -> str:
    """Return a picture of these elements."""
    inside = f"<title>{escape(title)}</title>{''.join(elements)}"
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(title)}">{inside}</svg>'


def log_scale(low: float, high: float, start: float, end: float) -> Scale:
    """Return the scale of a logarithmic axis from `low` at `start` to `high` at `end`."""
    per_unit = (end - start) / (math.log(high) - math.log(low))
    return lambda value: start + (math.log(value) - math.log(low)) * per_unit


def powers(most: int) -> list[int]:
    """Return 1, 10, 100, … up to `most`; below 100 with 2, 5, 20 and 50."""
    steps = (1, 2, 5) if most < 100 else (1,)
    ticks = (step * 10**power for power in range(int(math.log10(max(most, 1))) + 1) for step in steps)
    return [tick for tick in ticks if tick <= max(most, 1)]
