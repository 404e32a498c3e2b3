"""scipy.sparse, loaded when it is first used: a saved model tags texts without it, and it is a fifth of the start."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import scipy.sparse as sp
else:

    class _Lazy:
        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("scipy.sparse"), name)

    sp = _Lazy()

__all__ = ["sp"]
