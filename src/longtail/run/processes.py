"""The processes of one training, as `torchrun` and `accelerate launch` start them; the environment numbers them.

All of them do the same, each with its share of every batch; only the main one writes files and reports to the user.
"""

from __future__ import annotations

import os


def is_main_process() -> bool:
    """Return whether this process is the first one of its training, or the only one."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    return alone or os.environ.get("RANK", "0") == "0"
