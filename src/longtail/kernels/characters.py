"""A chart of all characters: what each is in lower case, and whether words, spaces or numbers are made of it.

    chart[code] = lower-case code | WORD | SPACE | DIGIT        (0x40000,) uint32

It is asked of Python's own `str.lower` and `re`, a whole plane of characters at a time (15 ms), so a kernel
that reads bytes agrees with Python to the letter. Characters beyond the chart stay as they are and are no
letters, digits or spaces: Unicode has none outside its first four planes.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from numpy.typing import NDArray

CODE = 0x1FFFFF
"""The bits of the chart that hold a character."""
WORD = 1 << 21
r"""Words are made of it: `\w`."""
SPACE = 1 << 22
r"""It stands between words: `\s`."""
DIGIT = 1 << 23
r"""Numbers are made of it: `\d`."""

N_CHARTED = 0x40000

CONTEXT = "\u0130\u03a3"
"""The two letters whose lower case is two letters (İ) or depends on the letters around (Σ): Python must lower them."""


@cache
def character_chart(lowercase: bool) -> NDArray[np.uint32]:
    """Return the chart; without `lowercase` every character is kept as it is."""
    characters = np.arange(N_CHARTED, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    if lowercase:
        # One place a character: these two never reach the kernel.
        characters = characters.replace(CONTEXT[0], ".").replace(CONTEXT[1], ".").lower()
    chart = np.frombuffer(characters.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32)
    for pattern, kind in ((r"\w+", WORD), (r"\s+", SPACE), (r"\d+", DIGIT)):
        for run in re.finditer(pattern, characters):
            chart[run.start() : run.end()] |= np.uint32(kind)
    return chart
