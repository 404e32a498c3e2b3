"""What the library has to say while it works: a standard logger, silent until somebody listens.

The command line shows it as notes; in Python, `logging` does what a program asks of it.
"""

from __future__ import annotations

import logging

LOG = logging.getLogger("longtail")
LOG.addHandler(logging.NullHandler())
