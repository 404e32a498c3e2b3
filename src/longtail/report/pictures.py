"""The pictures of a report as SVG, drawn by hand so that a page needs no library; colours come from its style.

frequency_picture  training texts of each label by rank, both axes logarithmic, head, torso and tail shaded
band_picture       how many of the true labels are found, by band, with intervals
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from longtail.report.tables import main_length, percent

WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 26, 44
BANDS = (("head", float("inf")), ("torso", 101), ("tail", 11))
"""Each with the number of texts that its labels stay below."""
BAR_HEIGHT, BAR_LEFT, BAR_RIGHT = 34, 76, 120


def frequency_picture(curve: Sequence[Sequence[int]]) -> str:
    """Training texts a label, from [rank, texts] points with the most frequent first."""
    n_labels, most = curve[-1][0], curve[0][1]
    x = LogScale(0.85, n_labels * 1.2, LEFT, WIDTH - RIGHT)
    y = LogScale(0.8, max(most, 1) * 1.3, HEIGHT - BOTTOM, TOP)
    parts = []
    floor = HEIGHT - BOTTOM
    edges = [next((rank for rank, texts in curve if texts < most_texts), None) for _, most_texts in BANDS]
    starts = [x(rank) if rank is not None else x(n_labels) for rank in edges]
    for (name, _), start, end in zip(BANDS, starts, [*starts[1:], x(n_labels)], strict=True):
        if end > start:
            parts.append(box(f"band {name}", start, TOP, end - start, floor - TOP))
        if end > start + 30:
            middle = (start + end) / 2
            parts.append(f'<text class="name" x="{middle:.1f}" y="{TOP - 8}" text-anchor="middle">{name}</text>')
    for tick in powers(n_labels):
        parts.append(f'<line class="grid" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{floor}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{floor + 16}" text-anchor="middle">{tick:,}</text>')
    for tick in powers(most):
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{LEFT - 7}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:,}</text>')
    points = " ".join(f"{x(rank):.1f},{y(max(texts, 1)):.1f}" for rank, texts in curve)
    parts.append(f'<polyline class="curve" points="{points}"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">labels, most frequent first</text>')
    side = (TOP + floor) / 2
    parts.append(f'<text transform="translate(14 {side}) rotate(-90)" text-anchor="middle">training texts</text>')
    return svg(WIDTH, HEIGHT, "Training texts of each label", parts)


def band_picture(results: dict[str, Any]) -> str:
    """Bars of R@k by band."""
    k = main_length(results)
    name = f"R@{k}"
    rows = [("all", results["metrics"][name], results.get("intervals", {}).get("metrics", {}).get(name))]
    for band, values in results["bands"].items():
        rows.append((band, values[name], results.get("intervals", {}).get("bands", {}).get(band, {}).get(name)))
    room = WIDTH - BAR_LEFT - BAR_RIGHT
    parts = []
    for number, (band, value, interval) in enumerate(rows):
        top = number * BAR_HEIGHT + 4
        middle = top + BAR_HEIGHT / 2 - 3
        parts.append(f'<text class="name" x="{BAR_LEFT - 10}" y="{middle + 4}" text-anchor="end">{band}</text>')
        parts.append(box("rail", BAR_LEFT, top, room, BAR_HEIGHT - 10, 3))
        parts.append(box(f"bar {band}", BAR_LEFT, top, room * value, BAR_HEIGHT - 10, 3))
        label = percent(value)
        if interval is not None:
            low, high = BAR_LEFT + room * interval["low"], BAR_LEFT + room * interval["high"]
            parts.append(f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>')
            label += f" ({percent(interval['low'])}–{percent(interval['high'])})"
        parts.append(f'<text x="{WIDTH - BAR_RIGHT + 8}" y="{middle + 4}">{label}</text>')
    return svg(WIDTH, len(rows) * BAR_HEIGHT + 4, f"{name} by band", parts)


def box(kind: str, x: float, y: float, width: float, height: float, round: int = 0) -> str:
    """A rectangle whose colour the style gives by `kind`."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}" rx="{round}"/>'


def svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    """A picture of these parts."""
    inside = "".join(parts)
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{title}"><title>{title}</title>{inside}</svg>'


class LogScale:
    """From a logarithmic axis to places in a picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.per = math.log(low), (end - start) / (math.log(high) - math.log(low))
        self.start = start

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return self.start + (math.log(value) - self.low) * self.per


def powers(most: int) -> list[int]:
    """1, 10, 100, … up to `most`."""
    return [10**power for power in range(int(math.log10(max(most, 1))) + 1)]
