"""What reviewers do: claim a text, decide on it, skip it, undo.

    claim(store, "news", "ada")                         ->  ClaimedText, or None when nothing is left for ada
    decide(store, Decision(key, text_id, "ada", ...))   ->  kept once, however often it is sent

A claim is one atomic statement. Whether an older claim has expired is checked there and nowhere else: the work of
people who left is free again, and if they come back in time for nobody else, it is still theirs. A decision whose
claim has gone to another person is kept as a further opinion.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from longtail.errors import DataError
from longtail.review.adding import Queue, Record, add_some, checked_fields, text_hash
from longtail.review.schema import DECISIONS, LABELS, SLOTS, TEXTS
from longtail.review.store import ReviewStore

LEASE_S = 30 * 60.0
"""How long a claimed text is kept for a person."""
_TRIES = 20
"""How often a claim is tried again where several clients of one person claim the same text."""
Kind = Literal["accept", "skip", "undo"]


class ClaimedText(NamedTuple):
    """A text that is a person's to decide on."""

    id: int
    fields: Mapping[str, str]
    hash: str
    blind: bool
    """Whether suggestions must not be shown."""
    expires: float


@dataclass(frozen=True)
class Shown:
    """A suggestion that was shown, or on blind texts would have been."""

    id: str
    score: float
    checked: bool
    """Whether it was checked before the person did anything."""
    name: str = ""


@dataclass(frozen=True)
class Decision:
    """What a person filed for a text."""

    key: str
    """Chosen by the sender, different for every decision; the same key is kept once."""
    text_id: int
    person: str
    labels: tuple[str, ...] = ()
    suggested: tuple[Shown, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """Names of labels that were added."""
    model: str | None = None
    """Fingerprint of the model that suggested."""
    threshold: float | None = None
    seconds: float | None = None
    keystrokes: int | None = None


class Filed(NamedTuple):
    """A decision that is on disk."""

    id: int
    kind: Kind
    text_id: int
    late: bool
    """Whether it is a further opinion, because the claim had gone to another person."""
    repeated: bool
    """Whether it was kept before, under the same key."""


class Undone(NamedTuple):
    """What was taken back."""

    text: ClaimedText
    labels: tuple[str, ...]
    """The labels that the person had filed."""


def claim(
    store: ReviewStore,
    queue: Queue,
    person: str,
    *,
    without: Collection[int] = (),
    lease_s: float = LEASE_S,
    now: float | None = None,
) -> ClaimedText | None:
    """Return the next text for a person: one that is theirs already, else the first that is free.

    Args:
        store: Where the queue is.
        queue: The queue.
        person: Who asks. Nobody gets a text again that they decided on or skipped.
        without: Ids of texts that the person has at hand.
        lease_s: How long the text is kept for the person.
        now: The time, in seconds since 1970.
    """
    now = time.time() if now is None else now
    for _ in range(_TRIES):
        try:
            with store.writing() as connection:
                for choice in (_held(queue, person, without), _free(queue, person, now)):
                    taken = sa.update(SLOTS).where(SLOTS.c.id == choice.scalar_subquery())
                    taken = taken.values(person=person, expires=now + lease_s).returning(SLOTS.c.text_id)
                    text_id = connection.execute(taken).scalar()
                    if text_id is not None:
                        return _text(connection, text_id, now + lease_s)
                return None
        except sa.exc.IntegrityError:  # the person claimed another slot of the same text at the same moment
            continue
    raise DataError(f"'{person}' claims texts of '{queue.name}' from too many places at once; try again")


def decide(
    store: ReviewStore,
    decision: Decision,
    *,
    kind: Literal["accept", "skip"] = "accept",
    queue: Queue | None = None,
    now: float | None = None,
) -> Filed:
    """Keep a decision, and say so only when it is on disk.

    Args:
        store: Where the text is.
        decision: What the person filed.
        kind: `skip` gives the text back for others.
        queue: The queue of the text; a text of another one is refused.
        now: The time, in seconds since 1970.
    """
    now = time.time() if now is None else now
    with store.writing() as connection:
        text = connection.execute(sa.select(TEXTS).where(TEXTS.c.id == decision.text_id)).first()
        if text is None or (queue is not None and text.queue_id != queue.id):
            place = store.address if queue is None else f"queue '{queue.name}'"
            raise DataError(f"there is no text {decision.text_id} in {place}; fetch the next one")
        _lock(connection, text.id)
        if (kept := _kept_before(connection, decision.key)) is not None:
            return kept
        mine = sa.update(SLOTS).where(SLOTS.c.text_id == text.id, SLOTS.c.person == decision.person)
        after = (
            {"done": True, "expires": None} if kind == "accept" else {"person": None, "expires": None, "done": False}
        )
        late = connection.execute(mine.values(**after)).rowcount == 0
        names = {shown.id: shown.name for shown in decision.suggested if shown.name} | dict(decision.names)
        _keep_names(connection, names)
        row = {
            "key": decision.key,
            "queue_id": text.queue_id,
            "text_id": text.id,
            "text_hash": text.hash,
            "person": decision.person,
            "time": now,
            "kind": kind,
            "labels": list(dict.fromkeys(decision.labels)) if kind == "accept" else [],
            "suggested": [{"id": s.id, "score": s.score, "checked": s.checked} for s in decision.suggested],
            "blind": text.blind,
            "late": late and kind == "accept",
            "model": decision.model,
            "threshold": decision.threshold,
            "seconds": decision.seconds,
            "keystrokes": decision.keystrokes,
        }
        return _insert(connection, row)


def undo(
    store: ReviewStore,
    queue: Queue,
    person: str,
    key: str,
    *,
    lease_s: float = LEASE_S,
    now: float | None = None,
) -> Undone | None:
    """Take back the last decision of a person in a queue and return its text; None if there is nothing to undo.

    Args:
        store: Where the queue is.
        queue: The queue.
        person: Who asks.
        key: Chosen by the sender: an undo that is sent twice undoes one decision.
        lease_s: How long the text is kept for the person.
        now: The time, in seconds since 1970.
    """
    now = time.time() if now is None else now
    with store.writing() as connection:
        last = connection.execute(_last_of(queue, person)).first()
        if last is not None:
            _lock(connection, last.text_id)
        kept = _kept_before(connection, key)
        if kept is None:
            if last is None:
                return None
            _take_back(connection, last.text_id, person, now, lease_s)
            row = {name: getattr(last, name) for name in ("queue_id", "text_id", "text_hash", "person", "blind")}
            row |= {"key": key, "time": now, "kind": "undo", "labels": [], "suggested": [], "late": False}
            kept = _insert(connection, row)
        before = sa.select(DECISIONS.c.labels).where(
            DECISIONS.c.text_id == kept.text_id, DECISIONS.c.person == person, DECISIONS.c.id < kept.id
        )
        labels = connection.execute(before.order_by(DECISIONS.c.id.desc()).limit(1)).scalar_one()
        return Undone(_text(connection, kept.text_id, now + lease_s), tuple(labels))


def claim_new_text(
    store: ReviewStore,
    queue: Queue,
    person: str,
    fields: Mapping[str, str],
    *,
    lease_s: float = LEASE_S,
    now: float | None = None,
) -> ClaimedText:
    """Add a text that a person brings, unless the queue has it, and claim it for them where a slot is free."""
    now = time.time() if now is None else now
    digest = text_hash(checked_fields(fields))
    with store.writing() as connection:
        add_some(connection, queue, [Record(fields)], first=True)
        text_id = connection.execute(
            sa.select(TEXTS.c.id).where(TEXTS.c.queue_id == queue.id, TEXTS.c.hash == digest)
        ).scalar_one()
        _take_back(connection, text_id, person, now, lease_s)
        return _text(connection, text_id, now + lease_s)


def _held(queue: Queue, person: str, without: Collection[int]) -> sa.Select[Any]:
    """Select a slot that is the person's already, expired or not."""
    return (
        sa.select(SLOTS.c.id)
        .where(SLOTS.c.queue_id == queue.id, SLOTS.c.person == person, SLOTS.c.done.is_(False))
        .where(SLOTS.c.text_id.not_in(list(without)))
        .order_by(SLOTS.c.turn, SLOTS.c.id)
        .limit(1)
        .with_for_update(skip_locked=True)
    )


def _free(queue: Queue, person: str, now: float) -> sa.Select[Any]:
    """Select the first slot that nobody holds, of a text that the person has had nothing to do with."""
    other, past = SLOTS.alias("other"), DECISIONS.alias("past")
    holds = sa.exists().where(other.c.text_id == SLOTS.c.text_id, other.c.person == person)
    decided = sa.exists().where(past.c.text_id == SLOTS.c.text_id, past.c.person == person)
    return (
        sa.select(SLOTS.c.id)
        .where(SLOTS.c.queue_id == queue.id, SLOTS.c.done.is_(False))
        .where(sa.or_(SLOTS.c.person.is_(None), SLOTS.c.expires <= now))
        .where(~holds, ~decided)
        .order_by(SLOTS.c.turn, SLOTS.c.id)
        .limit(1)
        .with_for_update(skip_locked=True, of=SLOTS)
    )


def _take_back(connection: Connection, text_id: int, person: str, now: float, lease_s: float) -> None:
    """Make a text the person's again, in the slot that they had or in one that is free, if there is any."""
    after = {"person": person, "expires": now + lease_s, "done": False}
    mine = sa.update(SLOTS).where(SLOTS.c.text_id == text_id, SLOTS.c.person == person)
    if connection.execute(mine.values(**after)).rowcount:
        return
    free = sa.select(SLOTS.c.id).where(SLOTS.c.text_id == text_id, SLOTS.c.done.is_(False))
    free = free.where(sa.or_(SLOTS.c.person.is_(None), SLOTS.c.expires <= now)).limit(1)
    free = free.with_for_update(skip_locked=True)
    connection.execute(sa.update(SLOTS).where(SLOTS.c.id == free.scalar_subquery()).values(**after))


def _last_of(queue: Queue, person: str) -> sa.Select[Any]:
    """Select the last row of a person in a queue that they have not taken back."""
    later = DECISIONS.alias("later")
    return (
        sa.select(DECISIONS)
        .where(DECISIONS.c.queue_id == queue.id, DECISIONS.c.person == person, DECISIONS.c.kind != "undo")
        .where(
            ~sa.exists().where(
                later.c.text_id == DECISIONS.c.text_id, later.c.person == person, later.c.id > DECISIONS.c.id
            )
        )
        .order_by(DECISIONS.c.id.desc())
        .limit(1)
    )


def _lock(connection: Connection, text_id: int) -> None:
    """Let those who decide on one text do so one after the other; SQLite has one writer anyway."""
    connection.execute(sa.select(TEXTS.c.id).where(TEXTS.c.id == text_id).with_for_update())


def _kept_before(connection: Connection, key: str) -> Filed | None:
    row = connection.execute(sa.select(DECISIONS).where(DECISIONS.c.key == key)).first()
    return None if row is None else Filed(row.id, row.kind, row.text_id, row.late, True)


def _insert(connection: Connection, row: Mapping[str, Any]) -> Filed:
    number = connection.execute(sa.insert(DECISIONS).values(**row).returning(DECISIONS.c.id)).scalar_one()
    return Filed(number, row["kind"], row["text_id"], row["late"], False)


def _keep_names(connection: Connection, names: Mapping[str, str]) -> None:
    """Keep the names of labels; a label that has one keeps it."""
    if not names:
        return
    known = set(connection.execute(sa.select(LABELS.c.id).where(LABELS.c.id.in_(list(names)))).scalars())
    for label in sorted(set(names) - known):
        try:
            with connection.begin_nested():
                connection.execute(sa.insert(LABELS).values(id=label, name=names[label]))
        except sa.exc.IntegrityError:  # another process was faster
            pass


def _text(connection: Connection, text_id: int, expires: float) -> ClaimedText:
    row = connection.execute(sa.select(TEXTS).where(TEXTS.c.id == text_id)).one()
    return ClaimedText(row.id, row.fields, row.hash, row.blind, expires)
