"""The processes of one job, as `torchrun` and `accelerate launch` start them. The environment tells which one this is.

All of them do the same, each with its part of every batch; the main one alone writes files and talks to people.
"""

from __future__ import annotations

import os


def is_main_process() -> bool:
    """Whether this process is the first of its job, or the only one."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    return alone or os.environ.get("RANK", "0") == "0"
