"""What the pictures of a page show, read from their SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

LETTER = 6.8
"""The width of a letter of the pictures' size in a wide font."""


class Label(NamedTuple):
    """A text of a picture, with its ends and its height."""

    words: str
    start: float
    end: float
    y: float
    width: float
    height: float

    @property
    def inside(self) -> bool:
        """Whether all of it lies in its picture."""
        return self.start >= -1 and self.end <= self.width + 1 and 8 <= self.y <= self.height - 2


def labels_of(page: str) -> Iterator[Label]:
    """Yield the texts of all pictures; turned ones are measured along their line."""
    for svg in re.findall(r"<svg.*?</svg>", page, flags=re.DOTALL):
        picture = ElementTree.fromstring(svg)
        assert picture.get("role") == "img"
        assert picture.get("aria-label")
        _, _, width, height = map(float, picture.attrib["viewBox"].split())
        for text in picture.iter("text"):
            words = text.text or ""
            turned = re.match(r"translate\(([\d.]+) ([\d.]+)\) rotate", text.get("transform", ""))
            if turned:
                middle, length = float(turned[2]), len(words) * LETTER
                yield Label(words, middle - length / 2, middle + length / 2, float(turned[1]), height, width)
                continue
            x, y, length = float(text.attrib["x"]), float(text.attrib["y"]), len(words) * LETTER
            start = x - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor", "start")]
            yield Label(words, start, start + length, y, width, height)
