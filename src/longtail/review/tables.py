"""The figures of a queue as tables, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from longtail.tables import Table


def review_tables(figures: dict[str, Any]) -> Iterator[tuple[str, Table]]:
    """Yield titles and tables of what `longtail.review.statistics.figures` returns."""
    progress = figures["progress"]
    yield figures["queue"], Table(list(progress), [[f"{count:,}" for count in progress.values()]])
    groups = [("shown suggestions", figures["acceptance"]), ("hidden suggestions", figures["unprompted"])]
    rows = [[name, *_acceptance(group)] for name, group in groups if group["texts"]]
    if rows:
        yield "What people filed", Table(["in per cent", *_ACCEPTANCE], rows)
    for title, name, head in (("By rank", "by_rank", "rank"), ("By score", "by_score", "from")):
        if figures[name]:
            cells = [[str(row[head]), f"{row['shown']:,}", _percent(row["filed"])] for row in figures[name]]
            yield title, Table([head, "shown", "filed, %"], cells)
    for title, name in (("By person", "by_person"), ("By day", "by_day"), ("By model", "by_model")):
        if figures[name]:
            cells = [[_short(row["key"]), *_acceptance(row), *_effort(row)] for row in figures[name]]
            yield title, Table(["in per cent", *_ACCEPTANCE, *_EFFORT], cells)
    agreement = figures["agreement"]
    if agreement["texts"]:
        overall = [f"{agreement['texts']:,}", _percent(agreement["same_labels"]), _number(agreement["alpha"])]
        yield "Agreement", Table(["", "texts", "same labels, %", "alpha"], [["all labels", *overall]])
        cells = [[one["name"], f"{one['n_texts']:,}", _number(one["alpha"])] for one in agreement["labels"]]
        yield "Agreement by label", Table(["label", "texts", "alpha"], cells)


_ACCEPTANCE = ["texts", "all correct", "checked, filed", "unchecked, filed", "added per text"]
_EFFORT = ["seconds", "keystrokes"]


def _acceptance(group: dict[str, Any]) -> list[str]:
    shares = [_percent(group[name]) for name in ("all_correct", "checked_filed", "unchecked_filed")]
    return [f"{group['texts']:,}", *shares, _number(group["added_per_text"])]


def _effort(group: dict[str, Any]) -> list[str]:
    return [_number(group["median_seconds"]), _number(group["median_keystrokes"])]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _short(key: str) -> str:
    return key[:40] or "–"
