"""Let one thread at a time compute with torch.

The number of torch's threads, by which sums are rounded, and its random state belong to the whole process. Trainings
and predictions that run side by side in a process therefore take turns, one step or batch each: what one of them
computes does not depend on the others. Side by side on the same cores they would not be faster.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from longtail.run.engine import Engine

_TURN = threading.RLock()


@contextmanager
def in_turn(engine: Engine) -> Iterator[None]:
    """Wait until no other thread computes; then let torch use as many threads as the engine has."""
    with _TURN:
        before = torch.get_num_threads()
        torch.set_num_threads(engine.n_local_threads)
        try:
            yield
        finally:
            torch.set_num_threads(before)
