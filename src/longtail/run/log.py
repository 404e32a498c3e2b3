"""The logger of the library. The command line shows its messages as notes; Python programs configure it with `logging`.

Without a handler, logged warnings become Python warnings, and the rest is dropped.
"""

from __future__ import annotations

import logging
import warnings

LOG = logging.getLogger("longtail")


class _UntilSomeoneListens(logging.Handler):
    """Turns warnings that no other handler would get into Python's warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        if LOG.handlers == [self] and not (LOG.propagate and logging.getLogger().handlers):
            warnings.warn(record.getMessage(), stacklevel=2)


LOG.addHandler(_UntilSomeoneListens(logging.WARNING))
