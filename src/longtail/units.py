"""Write amounts with their units, for people: bytes and seconds."""

from __future__ import annotations


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
