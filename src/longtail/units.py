"""Amounts with their units, as people write and read them: bytes and seconds."""

from __future__ import annotations

import re

_NUMBER = r"(\d{1,9}(?:\.\d{1,9})?)"
_DURATION = re.compile(rf"(?:{_NUMBER}\s*h)?\s*(?:{_NUMBER}\s*m(?:in)?)?\s*(?:{_NUMBER}\s*s?)?")


def in_bytes(n: float) -> str:
    """Return a number of bytes with the unit that suits it, `1.5 MB`."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if n < 1000:
            return f"{n:,.0f} {unit}" if unit == "bytes" or n >= 100 else f"{n:.1f} {unit}"
        n /= 1000
    return f"{n:,.1f} TB"


def in_seconds(n: float) -> str:
    """Return a duration in seconds, from 100 s on in minutes and seconds."""
    return f"{n:.1f} s" if n < 100 else f"{n // 60:.0f} min {n % 60:.0f} s"


def seconds_of(text: str) -> float:
    """Return the seconds of a duration such as `90s`, `10m` or `1h30m`; a number alone is seconds.

    Raises ValueError for anything else.
    """
    match = _DURATION.fullmatch(text.strip())
    if match is None or not any(match.groups()):
        raise ValueError(f"a time must be such as 90s, 10m or 1h30m, got '{text}'")
    hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 3600 * hours + 60 * minutes + seconds
