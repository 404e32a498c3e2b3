"""Look at the labels that cells were split into, and say so if the separator is probably another one."""

from __future__ import annotations

from collections.abc import Sequence

from longtail.run.log import LOG

_MARKS = (";", ",", "|", "\t", "/")
_BLANK = " "
_SHARE = 0.2
"""A separator stands in at least so many of the labels."""


def check_separator(labels: Sequence[str], separator: str) -> None:
    """Log a warning if another separator would make fewer labels of `labels`, or if they are lists written as text."""
    lists = [label for label in labels if label[:1] in "[(" and label[-1:] in "])"]
    if len(lists) >= max(1, _SHARE * len(labels)):
        how = f"write them as a{separator}b, or as JSON lines"
        LOG.warning(f"labels such as {lists[0]!r} are lists written as text; {how}")
        return
    fewer = {mark: n for mark in (*_MARKS, _BLANK) if mark not in separator and (n := _if_split(labels, mark))}
    if not fewer:
        return
    mark = min(fewer, key=lambda mark: fewer[mark])
    example = next(label for label in labels if mark in label)
    LOG.warning(
        f"labels such as {example!r} hold {mark!r}: split there, they would be "
        f'{fewer[mark]:,} instead of {len(labels):,} labels; set `label_separator="{mark}"` if it separates labels'
    )


def _if_split(labels: Sequence[str], mark: str) -> int | None:
    """Return how many labels there would be, if that is no more; marks that names often hold must make half of them."""
    if sum(mark in label for label in labels) < _SHARE * len(labels):
        return None
    n = len({part.strip() for label in labels for part in label.split(mark)} - {""})
    return n if n <= (len(labels) / 2 if mark in (_BLANK, "/") else len(labels)) else None
