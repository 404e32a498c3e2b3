"""The search space: options with choices or a range, as data.

    training.epochs=5,10              one of these values
    training.rate=5e-5..2e-4:log      a number in this range, drawn evenly on a log scale
    ranker.n_recalled=20..100         a whole number, if both ends are whole

The default space of each method is the file METHOD.toml beside this one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeAlias

from longtail.errors import ConfigError
from longtail.settings import read_value

_ROOT = Path(str(files("longtail.tuning")))


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    path: str
    values: tuple[Any, ...]

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that the option must allow."""
        return self.values


@dataclass(frozen=True)
class Range:
    """A number in a range."""

    path: str
    low: float
    high: float
    log: bool = False

    @property
    def ends(self) -> tuple[Any, ...]:
        """The values that the option must allow."""
        return self.low, self.high


Tried: TypeAlias = Choices | Range


def read_space(tries: Sequence[str]) -> tuple[Tried, ...]:
    """Return the search space that `option=values` texts describe."""
    pairs = []
    for text in tries:
        path, equals, values = text.partition("=")
        if not equals or not path.strip() or not values.strip():
            raise ConfigError(
                f"what to try must be option=values, such as training.rate=5e-5..2e-4:log or epochs=5,10, got '{text}'"
            )
        pairs.append((path.strip(), values.strip()))
    twice = next((path for path, _ in pairs if sum(path == other for other, _ in pairs) > 1), None)
    if twice:
        raise ConfigError(f"{twice} must be tried once, got it twice; put all values into one")
    return tuple(_tried(path, values) for path, values in pairs)


def default_space(method: str) -> tuple[Tried, ...]:
    """Return the default search space of a method."""
    file = _ROOT / f"{method}.toml"
    if not file.is_file():
        raise ConfigError(f"nothing is known to try for method '{method}'; say what with `tries`")
    wanted: Mapping[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))["try"]
    return read_space([f"{path}={values}" for path, values in wanted.items()])


def _tried(path: str, values: str) -> Tried:
    span, _, scale = values.partition(":")
    if ".." not in span:
        choices = tuple(read_value(value.strip()) for value in values.split(","))
        if any(isinstance(value, list | dict) for value in choices):
            raise ConfigError(f"{path}: values to try must be numbers, words, true or false, got '{values}'")
        if len(choices) < 2:
            raise ConfigError(f"{path}: there must be two values to try, got '{values}'; one is set with `settings`")
        return Choices(path, choices)
    low, high = (read_value(end.strip()) for end in span.split("..", 1))
    if not all(isinstance(end, int | float) and not isinstance(end, bool) for end in (low, high)):
        raise ConfigError(f"{path}: a range must be from number to number, such as 0.1..0.5, got '{values}'")
    if scale not in ("", "log"):
        raise ConfigError(f"{path}: a range may end in :log, got ':{scale}'")
    if low >= high or (scale and low <= 0):
        raise ConfigError(f"{path}: a range must go up{', from above 0 with :log' if scale else ''}, got '{values}'")
    return Range(path, low, high, bool(scale))
