"""Tokens, vocabularies and features of the same texts, made once for all trainings of a process.

A benchmark trains many models on the same texts; a lent GPU should not wait for the same tokens again and again.
Nothing of a model is kept: only what is a function of texts and options.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import longtail.labels.teacher
import longtail.nn.tagger
from longtail.options import Options
from longtail.text.words import WordTokeniser


def once() -> None:
    """From now on, in this process."""
    tagger: Any = longtail.nn.tagger
    teacher: Any = longtail.labels.teacher
    words: Any = WordTokeniser
    tagger.tokenise = _kept(tagger.tokenise)
    teacher.fit_points = _kept(teacher.fit_points)
    words.learn = _kept(words.learn)


def _kept(make: Callable[..., Any]) -> Callable[..., Any]:
    found: dict[Any, Any] = {}

    def get(*given: Any, **more: Any) -> Any:
        key = tuple(map(_key, (*given, *more.values())))
        if key not in found:
            found[key] = given, make(*given, **more)  # what was given is kept, so that no other gets its id
        return found[key][1]

    return get


def _key(part: Any) -> Any:
    """What tells one argument from another; progress and stages do not matter."""
    if isinstance(part, Options):
        return part.model_dump_json()
    if isinstance(part, str | int | float | tuple):
        return part
    if hasattr(part, "texts"):  # a split
        return id(part.texts)
    if hasattr(part, "column_names"):
        return id(part)
    if hasattr(part, "max_tokens"):  # a tokeniser
        return type(part).__name__, part.max_tokens, part.n_ids
    return None
