"""What people decided: the last word of each person on each text.

Rows are only ever added to the store. A later row of the same person for the same text counts instead of an earlier
one, and an undo counts as no decision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

import sqlalchemy as sa

from longtail.review.adding import Queue
from longtail.review.schema import DECISIONS, LABELS, QUEUES, TEXTS
from longtail.review.store import ReviewStore

_AT_ONCE = 1000


class Opinion(NamedTuple):
    """What one person filed for a text, in the end."""

    queue: str
    text_id: int
    person: str
    time: float
    labels: tuple[str, ...]
    suggested: tuple[Mapping[str, Any], ...]
    """`id`, `score` and `checked` of each suggestion, best first."""
    blind: bool
    late: bool
    model: str | None
    seconds: float | None
    keystrokes: int | None


class Reviewed(NamedTuple):
    """A text with the opinions of all who decided on it."""

    fields: Mapping[str, str]
    opinions: list[Opinion]


def opinions(store: ReviewStore, queue: Queue | None = None) -> Iterator[Opinion]:
    """Yield what people filed, by text and then by time; of one queue or of all."""
    for _, opinion in _rows(store, queue):
        yield opinion


def reviewed(store: ReviewStore, queue: Queue | None = None) -> Iterator[Reviewed]:
    """Yield every text that somebody decided on, in the order in which texts were added."""
    for _, group in groupby(_rows(store, queue), key=lambda row: row[1].text_id):
        rows = list(group)
        yield Reviewed(rows[0][0], [opinion for _, opinion in rows])


def label_names(store: ReviewStore, labels: Collection[str] | None = None) -> dict[str, str]:
    """Return the names of labels that were suggested or added; of all, or of those of `labels` that have one."""
    wanted = sa.select(LABELS).order_by(LABELS.c.id)
    wanted = wanted if labels is None else wanted.where(LABELS.c.id.in_(list(labels)))
    with store.reading() as connection:
        return {row.id: row.name for row in connection.execute(wanted)}


def log(store: ReviewStore, queue: Queue | None = None) -> Iterator[dict[str, Any]]:
    """Yield every row of the store's decisions as plain data, undone ones too."""
    wanted = sa.select(QUEUES.c.name.label("queue"), DECISIONS).join(QUEUES, QUEUES.c.id == DECISIONS.c.queue_id)
    wanted = wanted if queue is None else wanted.where(DECISIONS.c.queue_id == queue.id)
    with store.reading() as connection:
        for row in connection.execute(wanted.order_by(DECISIONS.c.id)).yield_per(_AT_ONCE):
            yield {name: value for name, value in row._mapping.items() if name != "queue_id"}


def _rows(store: ReviewStore, queue: Queue | None) -> Iterator[tuple[Mapping[str, str], Opinion]]:
    last = sa.select(sa.func.max(DECISIONS.c.id)).group_by(DECISIONS.c.text_id, DECISIONS.c.person)
    wanted = (
        sa.select(QUEUES.c.name.label("queue"), TEXTS.c.fields, DECISIONS)
        .join(QUEUES, QUEUES.c.id == DECISIONS.c.queue_id)
        .join(TEXTS, TEXTS.c.id == DECISIONS.c.text_id)
        .where(DECISIONS.c.id.in_(last if queue is None else last.where(DECISIONS.c.queue_id == queue.id)))
        .where(DECISIONS.c.kind == "accept")
        .order_by(DECISIONS.c.text_id, DECISIONS.c.id)
    )
    with store.reading() as connection:
        for row in connection.execute(wanted).yield_per(_AT_ONCE):
            values = {name: getattr(row, name) for name in Opinion._fields}
            values |= {"labels": tuple(row.labels), "suggested": tuple(row.suggested)}
            yield row.fields, Opinion(**values)
