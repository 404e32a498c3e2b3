"""Find texts of a queue by their words: examples for a new label.

find_texts(store, queue, "heat pumps", 10)  ->  the first ten texts that have both words, in any form that begins so
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import sqlalchemy as sa

from longtail.review.adding import Queue
from longtail.review.schema import TEXTS
from longtail.review.store import ReviewStore

_MOST_READ = 50_000
"""Texts of a queue that are looked at; reading so many takes about a second."""
_AT_ONCE = 1000
_SHORTEST_CUT = 5
"""A word of at least so many letters is also found without its last one: `pumps` finds `pump`."""


class FoundText(NamedTuple):
    """A text that has all words."""

    id: int
    fields: Mapping[str, str]


def find_texts(store: ReviewStore, queue: Queue, query: str, n: int) -> list[FoundText]:
    """Return up to `n` texts of a queue in which some word begins with each word of a query, in the order of the file.

    Without a word in the query, all texts fit.
    """
    words = [word[:-1] if len(word) >= _SHORTEST_CUT else word for word in re.findall(r"\w+", query.casefold())]
    patterns = [re.compile(rf"\b{re.escape(word)}") for word in words]
    wanted = sa.select(TEXTS.c.id, TEXTS.c.fields).where(TEXTS.c.queue_id == queue.id)
    texts: list[FoundText] = []
    with store.reading() as connection:
        rows = connection.execute(wanted.order_by(TEXTS.c.position).limit(_MOST_READ)).yield_per(_AT_ONCE)
        for row in rows:
            text = "\n".join(row.fields.values()).casefold()
            if all(pattern.search(text) for pattern in patterns):
                texts.append(FoundText(row.id, row.fields))
                if len(texts) == n:
                    break
    return texts
