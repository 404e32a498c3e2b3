"""The logger of the library, silent until a handler is added.

The command line shows its messages as notes; Python programs configure it through `logging`.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("longtail")
LOG.addHandler(logging.NullHandler())
