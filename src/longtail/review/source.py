"""The decisions of a review store as a data set, so that `train`, `evaluate` and all other commands read them.

reviews.db, postgresql://...  ->  one split `train`: texts with the labels that people filed, and their fields
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from longtail.data.dataset import TEXT
from longtail.data.formats.base import FORMATS, Format
from longtail.data.formats.batch import Source, Stream, TextBatch
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.options import Options
from longtail.review.store import ADDRESSES, ReviewStore, is_store

if TYPE_CHECKING:
    from longtail.review.history import Opinion, Reviewed

_AT_ONCE = 1000
FACTS = ("reviewed_by", "reviewed_at")
"""Columns that `facts` adds."""


class ReviewsOptions(Options):
    """Which decisions are read."""

    queue: str | None = None
    """The queue; by default all of them."""
    agree: Literal["half", "all", "any", "last"] = "half"
    """Where several people decided on a text: labels that at least half of them filed, all, any, or the last one."""
    facts: bool = False
    """Whether to add who decided, and when, as columns of their own."""


def read(path: Path | str, options: ReviewsOptions) -> Source:
    """Return the texts on which somebody decided."""
    if Path(path).is_dir():
        raise DataError(f"{path} must hold a review store in one file, found none; name the file itself")
    with ReviewStore.open(path, create=False) as store:
        from longtail.review.history import label_names

        names = label_names(store)
    described = Vocabulary.of(list(names), names)  # as a hierarchy: it names labels of the texts and adds none
    return Source({"train": Stream(Path(path), _read(path, options))}, hierarchy=described)


def agreed(opinions: Sequence[Opinion], rule: str) -> list[str]:
    """Return the labels of a text by the rule that `ReviewsOptions.agree` describes, in the order of filing."""
    if rule == "last":
        return list(max(opinions, key=lambda opinion: opinion.time).labels)
    votes = Counter(label for opinion in opinions for label in opinion.labels)
    needed = {"any": 1, "all": len(opinions), "half": math.ceil(len(opinions) / 2)}[rule]
    return [label for label, count in votes.items() if count >= needed]


def _read(path: Path | str, options: ReviewsOptions) -> Iterator[TextBatch]:
    with ReviewStore.open(path, create=False) as store:
        from longtail.review.adding import find_queue
        from longtail.review.history import reviewed

        queue = None if options.queue is None else find_queue(store, options.queue)
        rest = reviewed(store, queue)
        is_empty = True
        while some := list(islice(rest, _AT_ONCE)):
            is_empty = False
            yield _batch(some, options)
        if is_empty:
            where = store.address if queue is None else f"queue '{queue.name}' of {store.address}"
            raise DataError(f"{where} must hold decisions, it has none yet; review some texts first")


def _batch(texts: Sequence[Reviewed], options: ReviewsOptions) -> TextBatch:
    columns = dict.fromkeys([TEXT, *(name for text in texts for name in text.fields)])
    table = {name: [text.fields.get(name, "") for text in texts] for name in columns}
    if options.facts:
        table["reviewed_by"] = [", ".join(sorted({one.person for one in text.opinions})) for text in texts]
        last = [max(one.time for one in text.opinions) for text in texts]
        table["reviewed_at"] = [time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)) for moment in last]
    labels = [agreed(text.opinions, options.agree) for text in texts]
    strings = {name: pa.array(values, pa.string()) for name, values in table.items()}
    return TextBatch(pa.table(strings), pa.array(labels, pa.list_(pa.string())))


FORMATS.register("reviews")(Format("decisions of a review store", ReviewsOptions, is_store, read, ADDRESSES))
