"""The tables of a review store.

    queue ─< text ─< slot        a text has one slot for each person who is to decide on it
                  ─< decision    what people did; the database refuses to change or delete a row
    label                        names of the labels that were suggested or added

A text belongs to one queue and occurs there once. A slot is open, claimed until it expires, or done.
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1
"""Written into each store; a store of another version is refused."""

METADATA = sa.MetaData()

FACTS = sa.Table(
    "longtail_review",
    METADATA,
    sa.Column("version", sa.Integer, primary_key=True),
)

QUEUES = sa.Table(
    "queue",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String, nullable=False, unique=True),
    sa.Column("created", sa.Double, nullable=False),  # seconds since 1970, like all times
    sa.Column("options", sa.JSON, nullable=False),
)

TEXTS = sa.Table(
    "text",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("queue_id", sa.ForeignKey("queue.id"), nullable=False),
    sa.Column("position", sa.Integer, nullable=False),
    sa.Column("hash", sa.String(64), nullable=False),
    sa.Column("fields", sa.JSON, nullable=False),  # field -> text
    sa.Column("blind", sa.Boolean, nullable=False),  # suggestions are not shown
    sa.UniqueConstraint("queue_id", "hash"),
)

SLOTS = sa.Table(
    "slot",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("queue_id", sa.ForeignKey("queue.id"), nullable=False),
    sa.Column("text_id", sa.ForeignKey("text.id"), nullable=False),
    sa.Column("turn", sa.Double, nullable=False),  # texts are handed out by ascending turn
    sa.Column("person", sa.String),
    sa.Column("expires", sa.Double),
    sa.Column("done", sa.Boolean, nullable=False, default=False),
    sa.UniqueConstraint("text_id", "person"),  # nobody decides twice for the same text
    sa.Index("slot_turn", "queue_id", "done", "turn", "id"),
    sa.Index("slot_person", "person", "queue_id", "done"),
)

DECISIONS = sa.Table(
    "decision",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("key", sa.String, nullable=False, unique=True),  # chosen by whoever sends it: sent twice, kept once
    sa.Column("queue_id", sa.ForeignKey("queue.id"), nullable=False),
    sa.Column("text_id", sa.ForeignKey("text.id"), nullable=False),
    sa.Column("text_hash", sa.String(64), nullable=False),
    sa.Column("person", sa.String, nullable=False),
    sa.Column("time", sa.Double, nullable=False),
    sa.Column("kind", sa.String, nullable=False),  # accept, skip, undo
    sa.Column("labels", sa.JSON, nullable=False),  # ids that the person filed
    sa.Column("suggested", sa.JSON, nullable=False),  # id, score and checked of each suggestion, best first
    sa.Column("blind", sa.Boolean, nullable=False),  # whether the suggestions were hidden
    sa.Column("late", sa.Boolean, nullable=False),  # a further opinion: the person's claim had gone to another
    sa.Column("model", sa.String),  # fingerprint of the model that suggested
    sa.Column("threshold", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("keystrokes", sa.Integer),
    sa.Index("decision_person", "text_id", "person", "id"),
    sa.Index("decision_queue", "queue_id", "id"),
)

LABELS = sa.Table(
    "label",
    METADATA,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("name", sa.String, nullable=False),
)

_SQLITE_GUARDS = [
    sa.DDL(
        f"CREATE TRIGGER IF NOT EXISTS decision_no_{action} BEFORE {action} ON decision "
        "BEGIN SELECT RAISE(ABORT, 'decisions are only ever added'); END"
    )
    for action in ("update", "delete")
]
_POSTGRESQL_GUARDS = [
    sa.DDL(
        "CREATE OR REPLACE FUNCTION decision_is_final() RETURNS trigger AS $$ "
        "BEGIN RAISE EXCEPTION 'decisions are only ever added'; END $$ LANGUAGE plpgsql"
    ),
    sa.DDL(
        "CREATE TRIGGER decision_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON decision "
        "FOR EACH STATEMENT EXECUTE FUNCTION decision_is_final()"
    ),
]
for _guards, _dialect in ((_SQLITE_GUARDS, "sqlite"), (_POSTGRESQL_GUARDS, "postgresql")):
    for _guard in _guards:
        sa.event.listen(DECISIONS, "after_create", _guard.execute_if(dialect=_dialect))
