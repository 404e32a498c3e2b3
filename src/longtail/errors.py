"""Everything that longtail raises on purpose.

A message says what must hold, what was got, and the next step. The command line turns each of these
into one line and exit code 2, the server into a 4xx answer with the same text.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class LongtailError(Exception):
    """The parent of every error that a user can mend."""


class ConfigError(LongtailError, ValueError):
    """An option, preset or method name that cannot be used."""


class DataError(LongtailError, ValueError):
    """Texts, labels or files that cannot be read or trained on."""


class NotFittedError(LongtailError, ValueError, AttributeError):
    """A model was asked for labels before it was trained."""


class MissingExtraError(LongtailError, ImportError):
    """A part needs a library that is not installed."""


class ModelFormatError(LongtailError, ValueError):
    """A model folder that is damaged, incomplete or from a newer longtail."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` when a known word is close to `word`, else an empty string."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean '{close[0]}'?" if close else ""
