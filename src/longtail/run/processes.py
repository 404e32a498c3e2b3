"""The processes of one training, as `torchrun` and `accelerate launch` start them; the environment numbers them.

All of them do the same, each with its share of every batch; only the main one writes files and reports to the user.
"""

from __future__ import annotations

import os


def n_processes() -> int:
    """Return the number of processes of this training."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def process_number() -> int:
    """Return the number of this process among those of its training, from 0."""
    return int(os.environ.get("RANK", "0")) if n_processes() > 1 else 0


def is_main_process() -> bool:
    """Return whether this process is the first one of its training, or the only one."""
    return process_number() == 0
