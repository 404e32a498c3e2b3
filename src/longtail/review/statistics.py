"""What a queue's decisions say: how far it is, what of the suggestions people kept, how much work it was.

    figures(store, queue)  ->  plain data for `longtail review stats`, and for the dashboard of the page

Acceptance is the share of suggestions that people filed. A label that was not shown was not rejected, so texts without
shown suggestions (blind ones) are left out of it; what people filed there on their own accord is `unprompted`, and
acceptance that is higher than that is what suggestions talk people into.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from statistics import median
from typing import Any

import sqlalchemy as sa

from longtail.review.adding import Queue
from longtail.review.agreement import alpha_of_labels, alpha_of_sets
from longtail.review.history import Opinion, label_names, opinions
from longtail.review.schema import DECISIONS, SLOTS, TEXTS
from longtail.review.store import ReviewStore

N_RANKS = 10
N_BINS = 10
N_LABELS = 50
"""Labels whose agreement is shown."""


def progress(store: ReviewStore, queue: Queue, now: float | None = None) -> dict[str, int]:
    """Return the number of texts of a queue by state; a text is done when all who are to decide on it have.

    `skipped` texts wait for somebody else than those who skipped them.
    """
    now = time.time() if now is None else now
    open_slots = sa.func.sum(sa.case((SLOTS.c.done.is_(True), 0), else_=1))
    claimed = sa.func.sum(sa.case((sa.and_(SLOTS.c.done.is_(False), SLOTS.c.expires > now), 1), else_=0))
    skipped = sa.exists().where(DECISIONS.c.text_id == SLOTS.c.text_id, DECISIONS.c.kind == "skip")
    by_text = (
        sa.select(open_slots.label("open"), claimed.label("claimed"), sa.case((skipped, 1), else_=0).label("skipped"))
        .where(SLOTS.c.queue_id == queue.id)
        .group_by(SLOTS.c.text_id)
        .subquery()
    )
    state = sa.case(
        (by_text.c.open == 0, "done"),
        (by_text.c.claimed > 0, "claimed"),
        (by_text.c.skipped > 0, "skipped"),
        else_="waiting",
    )
    with store.reading() as connection:
        rows = connection.execute(sa.select(state, sa.func.count()).group_by(state)).all()
        counts: dict[str, int] = {row[0]: row[1] for row in rows}
        n_texts = connection.execute(
            sa.select(sa.func.count()).select_from(TEXTS).where(TEXTS.c.queue_id == queue.id)
        ).scalar_one()
    return {"texts": n_texts} | {name: counts.get(name, 0) for name in ("done", "claimed", "skipped", "waiting")}


def figures(store: ReviewStore, queue: Queue, now: float | None = None) -> dict[str, Any]:
    """Return all figures of a queue as plain data."""
    filed = list(opinions(store, queue))
    shown = [one for one in filed if not one.blind and one.suggested]
    by_text = [[one.labels for one in group] for _, group in groupby(filed, key=lambda one: one.text_id)]
    names = label_names(store)
    labels = alpha_of_labels(by_text)
    return {
        "queue": queue.name,
        "options": queue.options.plain(),
        "progress": progress(store, queue, now),
        "decisions": len(filed),
        "acceptance": acceptance(shown),
        "unprompted": acceptance([one for one in filed if one.blind]),
        "by_rank": _by_rank(shown),
        "by_score": _by_score(shown),
        "effort": effort(filed),
        "by_person": _by(filed, lambda one: one.person),
        "by_day": _by(filed, lambda one: time.strftime("%Y-%m-%d", time.gmtime(one.time))),
        "by_model": _by(filed, lambda one: one.model or ""),
        "agreement": {
            "texts": sum(len(sets) > 1 for sets in by_text),
            "same_labels": _share(len(set(map(frozenset, sets))) == 1 for sets in by_text if len(sets) > 1),
            "alpha": alpha_of_sets(by_text),
            "labels": [one._asdict() | {"name": names.get(one.label, one.label)} for one in labels[:N_LABELS]],
        },
    }


def acceptance(filed: Sequence[Opinion]) -> dict[str, Any]:
    """Return how many of the checked suggestions were filed, how many texts were all correct, and labels added."""
    checked = [(s["id"] in one.labels) for one in filed for s in one.suggested if s["checked"]]
    unchecked = [(s["id"] in one.labels) for one in filed for s in one.suggested if not s["checked"]]
    added = [len(set(one.labels) - {s["id"] for s in one.suggested}) for one in filed]
    return {
        "texts": len(filed),
        "checked": len(checked),
        "checked_filed": _share(checked),
        "unchecked_filed": _share(unchecked),
        "all_correct": _share(set(one.labels) == {s["id"] for s in one.suggested if s["checked"]} for one in filed),
        "added_per_text": sum(added) / len(added) if added else None,
    }


def effort(filed: Sequence[Opinion]) -> dict[str, Any]:
    """Return seconds and keystrokes per text: medians, which pauses do not move, and keystrokes on average."""
    seconds = [one.seconds for one in filed if one.seconds is not None]
    keystrokes = [one.keystrokes for one in filed if one.keystrokes is not None]
    return {
        "median_seconds": median(seconds) if seconds else None,
        "median_keystrokes": median(keystrokes) if keystrokes else None,
        "mean_keystrokes": sum(keystrokes) / len(keystrokes) if keystrokes else None,
    }


def _by(filed: Sequence[Opinion], key: Callable[[Opinion], str]) -> list[dict[str, Any]]:
    """Return acceptance and effort of groups, in the order of their keys."""
    groups: defaultdict[str, list[Opinion]] = defaultdict(list)
    for one in filed:
        groups[key(one)].append(one)
    return [
        {"key": name, "filed": len(group)} | acceptance([o for o in group if not o.blind]) | effort(group)
        for name, group in sorted(groups.items())
    ]


def _by_rank(filed: Sequence[Opinion]) -> list[dict[str, Any]]:
    pairs = [(rank, s["id"] in one.labels) for one in filed for rank, s in enumerate(one.suggested[:N_RANKS], 1)]
    return [{"rank": rank, **counts} for rank, counts in _counted(pairs).items()]


def _by_score(filed: Sequence[Opinion]) -> list[dict[str, Any]]:
    """Return acceptance by score; scores outside of 0 to 1 are no probabilities and are left out."""
    pairs = [
        (min(int(s["score"] * N_BINS), N_BINS - 1), s["id"] in one.labels)
        for one in filed
        for s in one.suggested
        if 0 <= s["score"] <= 1
    ]
    return [{"from": place / N_BINS, "to": (place + 1) / N_BINS, **counts} for place, counts in _counted(pairs).items()]


def _counted(pairs: Iterable[tuple[int, bool]]) -> dict[int, Mapping[str, Any]]:
    shown: Counter[int] = Counter()
    filed: Counter[int] = Counter()
    for place, is_filed in pairs:
        shown[place] += 1
        filed[place] += is_filed
    return {place: {"shown": shown[place], "filed": filed[place] / shown[place]} for place in sorted(shown)}


def _share(hits: Iterable[bool]) -> float | None:
    values = list(hits)
    return sum(values) / len(values) if values else None
