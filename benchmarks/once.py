"""What many trainings of a process have in common, made once: tokens, words and their vectors, neighbours, matchers.

A benchmark trains many models on the same texts; a lent GPU should not wait for the same tokens again and again.
All of it is a function of texts, options and seed: X-BERT's matcher too, below rows that differ in the ranker alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

import longtail.neighbours.text_pool
import longtail.nn.encoders.words
import longtail.text.readings
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex
from longtail.neighbours import NeighbourIndex
from longtail.nn.recall import NeuralRecall
from longtail.options import Options
from longtail.text.readings import TextReadings
from longtail.text.words import WordTokeniser


def once() -> None:
    """From now on, in this process."""
    readings: Any = longtail.text.readings
    pool: Any = longtail.neighbours.text_pool
    words: Any = WordTokeniser
    index: Any = NeighbourIndex
    encoders: Any = longtail.nn.encoders.words
    matcher: Any = NeuralRecall
    readings.tokenise = _kept(readings.tokenise)
    pool.fit_points = _kept(pool.fit_points)
    words.learn = _kept(words.learn)
    index.nearest = _kept(index.nearest)
    encoders.word_vectors = _kept(encoders.word_vectors)
    matcher.fit = _kept(matcher.fit)


def _kept(make: Callable[..., Any]) -> Callable[..., Any]:
    found: dict[Any, Any] = {}

    def get(*given: Any, **more: Any) -> Any:
        key = tuple(map(_key, (*given, *more.values())))
        if key not in found:
            found[key] = given, make(*given, **more)  # what was given is kept, so that no other gets its id
        return found[key][1]

    return get


def _digest(*arrays: Any) -> str:
    """Of what arrays hold."""
    made = hashlib.blake2b(digest_size=16)
    for array in arrays:
        made.update(np.ascontiguousarray(array).view(np.uint8).data)
    return made.hexdigest()


def _key(part: Any) -> Any:
    """What tells one argument from another; progress and stages do not matter."""
    if isinstance(part, Options):
        return part.model_dump_json()
    if isinstance(part, str | int | float | tuple):
        return part
    if isinstance(part, NeighbourIndex | LabelIndex):
        return _digest(*part.arrays().values())
    if isinstance(part, Rows):
        return _digest(part.matrix().data, part.matrix().indices)
    if isinstance(part, np.ndarray):
        return _digest(part)
    if hasattr(part, "texts"):  # a split
        return id(part.texts)
    if hasattr(part, "column_names"):
        return id(part)
    if isinstance(part, TextReadings):
        return id(part.table)
    if hasattr(part, "max_tokens"):  # a tokeniser
        return type(part).__name__, part.max_tokens, part.n_ids
    return None
