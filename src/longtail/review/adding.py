"""Put texts into queues.

    add_texts(store, "news", records, QueueOptions(per_text=2))  ->  Added(n_texts, n_known)

A text that the queue has already, word for word in all fields, is not added again: adding a file twice, or again after
a crash, does no harm. What is drawn (overlap, blind texts, a random order) follows from the text and the queue's seed.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy import Connection

from longtail.data.inputs import TEXT
from longtail.errors import ConfigError, DataError, did_you_mean
from longtail.options import Options
from longtail.review.schema import QUEUES, SLOTS, TEXTS
from longtail.review.store import ReviewStore

AT_ONCE = 1000
"""Texts that are added in one transaction: reviewers wait no longer than for these."""


class QueueOptions(Options):
    """How the texts of a queue are handed out."""

    per_text: int = Field(1, ge=1, le=100)
    """How many people decide on each text."""
    overlap: float = Field(0.0, ge=0, le=1)
    """Share of the texts on which one more person decides, for agreement."""
    order: Literal["file", "uncertain", "random"] = "file"
    """Which texts come first: as in the file; those of which the model is least certain; drawn at random."""
    blind: float = Field(0.0, ge=0, le=1)
    """Share of the texts that are shown without suggestions, to measure how far suggestions sway people."""
    seed: int = Field(0, ge=0)
    """What is drawn follows from this and the text."""


class Record(NamedTuple):
    """A text to be added."""

    fields: Mapping[str, str]
    uncertainty: float = 0.0
    """How uncertain a model is of its labels; used by queues of the order `uncertain`."""


class Added(NamedTuple):
    """What `add_texts` did."""

    n_texts: int
    n_known: int
    """Texts that the queue had already."""


class Queue(NamedTuple):
    """A queue of a store."""

    id: int
    name: str
    options: QueueOptions
    created: float


def queues(store: ReviewStore) -> list[Queue]:
    """Return the queues of a store, oldest first."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(QUEUES).order_by(QUEUES.c.id)).all()
    return [Queue(row.id, row.name, QueueOptions.of(row.options), row.created) for row in rows]


def find_queue(store: ReviewStore, name: str) -> Queue:
    """Return the queue of this name, or raise."""
    known = {queue.name: queue for queue in queues(store)}
    if name not in known:
        listed = f" It has {', '.join(known)}." if known else " It has none yet."
        raise DataError(f"{store.address} has no queue '{name}'{did_you_mean(name, known) or '.'}{listed}")
    return known[name]


def make_queue(store: ReviewStore, name: str, options: Mapping[str, Any] | None = None) -> Queue:
    """Return the queue of this name; make it if it is new.

    Args:
        store: Where the queue is.
        name: Its name.
        options: Values of `QueueOptions`. A queue keeps those that it was made with; others raise.
    """
    if not name.strip() or len(name) > 100 or "/" in name or not name.isprintable():
        raise ConfigError(f"the name of a queue must be 1 to 100 visible characters without '/', got {name!r:.60}")
    given = QueueOptions.of(options, source="queue").plain()
    with store.writing() as connection:
        row = connection.execute(sa.select(QUEUES).where(QUEUES.c.name == name)).first()
        if row is None:
            values = {"name": name, "created": time.time(), "options": given}
            try:
                with connection.begin_nested():
                    connection.execute(sa.insert(QUEUES).values(**values))
            except sa.exc.IntegrityError:  # another process was faster
                pass
            row = connection.execute(sa.select(QUEUES).where(QUEUES.c.name == name)).one()
    kept = QueueOptions.of(row.options)
    for option in options or {}:
        if kept.plain()[option] != given[option]:
            raise ConfigError(
                f"`{option}` of queue '{name}' is {kept.plain()[option]} and stays so, got {given[option]}; "
                "leave it out, or choose another queue"
            )
    return Queue(row.id, row.name, kept, row.created)


def add_texts(store: ReviewStore, queue: Queue, records: Iterable[Record]) -> Added:
    """Add texts behind those that the queue has."""
    n_texts = n_known = 0
    rest = iter(records)
    while some := list(islice(rest, AT_ONCE)):
        with store.writing() as connection:
            ids = add_some(connection, queue, some)
        n_texts += len(ids)
        n_known += len(some) - len(ids)
    return Added(n_texts, n_known)


def add_some(connection: Connection, queue: Queue, records: list[Record], *, first: bool = False) -> list[int]:
    """Add texts within a transaction, and return the ids of those that are new.

    Args:
        connection: The transaction.
        queue: The queue.
        records: Some texts.
        first: Hand them out before all others, none of them blind.
    """
    if connection.dialect.name == "postgresql":  # two that add to one queue number their texts one after the other
        connection.execute(sa.select(QUEUES.c.id).where(QUEUES.c.id == queue.id).with_for_update())
    last = connection.execute(
        sa.select(sa.func.coalesce(sa.func.max(TEXTS.c.position), -1)).where(TEXTS.c.queue_id == queue.id)
    ).scalar_one()
    rows: dict[str, dict[str, Any]] = {}
    turns: dict[str, float] = {}
    for number, record in enumerate(records, last + 1):
        fields = checked_fields(record.fields)
        digest = text_hash(fields)
        blind = not first and _share(queue, digest, "blind") < queue.options.blind
        row = {"queue_id": queue.id, "position": number, "hash": digest, "fields": fields, "blind": blind}
        rows.setdefault(digest, row)
        drawn = {"file": number, "random": _share(queue, digest, "order"), "uncertain": -record.uncertainty}
        turns.setdefault(digest, -float(number) - 2**40 if first else drawn[queue.options.order])
    known = set(_known(connection, queue, list(rows)))
    new = [row for digest, row in rows.items() if digest not in known]
    if not new:
        return []
    added = connection.execute(sa.insert(TEXTS).returning(TEXTS.c.id, TEXTS.c.hash), new).all()
    slots = [
        {"queue_id": queue.id, "text_id": row.id, "turn": turns[row.hash], "done": False}
        for row in added
        for _ in range(queue.options.per_text + (_share(queue, row.hash, "overlap") < queue.options.overlap))
    ]
    connection.execute(sa.insert(SLOTS), slots)
    return [row.id for row in added]


def checked_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a text that are not empty, as a store keeps them; raise if there is no text."""
    kept = {name: value.replace("\0", "\ufffd") for name, value in fields.items() if value.strip()}
    if not kept:
        raise DataError(f"a text must have a field that is not empty, got {', '.join(fields) or 'no field'}")
    return {TEXT: "", **kept}


def text_hash(fields: Mapping[str, str]) -> str:
    """Return the checksum of a text with all its fields."""
    joined = "\0".join(f"{name}\0{fields[name]}" for name in sorted(fields))
    return hashlib.sha256(joined.encode()).hexdigest()


def _known(connection: Connection, queue: Queue, hashes: list[str]) -> Iterator[str]:
    wanted = sa.select(TEXTS.c.hash).where(TEXTS.c.queue_id == queue.id, TEXTS.c.hash.in_(hashes))
    yield from connection.execute(wanted).scalars()


def _share(queue: Queue, digest: str, purpose: str) -> float:
    """Return a number in [0, 1) that looks drawn and follows from queue and text alone."""
    drawn = hashlib.sha256(f"{queue.options.seed}/{queue.name}/{purpose}/{digest}".encode()).digest()
    return int.from_bytes(drawn[:7], "big") / 2**56
