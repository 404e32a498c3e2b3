"""Neural parts: encoders, heads and the one training loop. Everything that imports torch is in here.

Without the extra, the first import of any of it says what to install.
"""

from __future__ import annotations

from importlib.util import find_spec

from longtail.errors import MissingExtraError

_NEEDED = ("torch", "transformers", "accelerate")
_MISSING = [name for name in _NEEDED if find_spec(name) is None]
if _MISSING:
    raise MissingExtraError(
        f"neural methods need {', '.join(_MISSING)}, not installed here; install with pip install 'longtail[neural]'"
    )
