"""Write decisions as files, whole or not at all.

write_reviews(address, "reviews.csv")              .jsonl .csv .tsv .parquet: texts with the labels that people filed
write_annif(address, "reviews.tsv")                Annif's short texts: text <tab> <label> <label>
write_log(address, "decisions.jsonl")              every decision as it was taken, undone ones too
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longtail.data.dataset import TEXT, Split
from longtail.data.load import load_dataset
from longtail.data.write import write_split
from longtail.errors import DataError
from longtail.files import whole
from longtail.review.adding import find_queue
from longtail.review.history import log
from longtail.review.store import ReviewStore
from longtail.tables import json_text


def write_reviews(address: str | Path, out: Path, **options: Any) -> int:
    """Write texts with their labels, fields, who decided and when; return the number of texts.

    `options` are those of `longtail.review.source.ReviewsOptions`.
    """
    split = _read(address, {"facts": True} | options)
    write_split(split, out)
    return len(split)


def write_annif(address: str | Path, out: Path, **options: Any) -> int:
    """Write a corpus of Annif: all fields of a text in one cell, then its label ids, which should be URIs."""
    split = _read(address, options)
    names = [TEXT, *(name for name in split.texts.column_names if name not in (TEXT, "id"))]
    ids = split.vocabulary.ids
    wrong = next((label for label in ids if any(mark in label for mark in "<>\t\n")), None)
    if wrong is not None:
        raise DataError(f"labels for Annif must be URIs without '<' and '>', got '{wrong}'; export another format")
    with whole(out, parents=True) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
        for row, fields in enumerate(split.texts.select(names).to_pylist()):
            text = " ".join(" ".join(fields[name] for name in reversed(names)).split())
            stream.write(f"{text}\t{' '.join(f'<{ids[label]}>' for label in split.labels[row])}\n")
    return len(split)


def write_log(address: str | Path, out: Path, queue: str | None = None) -> int:
    """Write one JSON object per decision; return how many there are."""
    n_decisions = 0
    with ReviewStore.open(address, create=False) as store:
        wanted = None if queue is None else find_queue(store, queue)
        with whole(out, parents=True) as temporary, open(temporary, "w", encoding="utf-8", newline="\n") as stream:
            for row in log(store, wanted):
                stream.write(json_text(row) + "\n")
                n_decisions += 1
    return n_decisions


def _read(address: str | Path, options: dict[str, Any]) -> Split:
    return load_dataset(str(address), format="reviews", **options).train
