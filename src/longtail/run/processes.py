"""The processes of one training, as `torchrun` and `accelerate launch` start them; the environment numbers them.

All of them do the same, each with its share of every batch; only the main one writes files and reports to the user.
"""

from __future__ import annotations

import os

from longtail.errors import ConfigError


def n_processes() -> int:
    """Return the number of processes of this training."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def process_number() -> int:
    """Return the number of this process among those of its training, from 0."""
    return int(os.environ.get("RANK", "0")) if n_processes() > 1 else 0


def check_processes(method: str, trains_networks: bool, n: int) -> None:
    """Raise if a method that several processes cannot train together is to be trained by them."""
    if n > 1 and not trains_networks:
        raise ConfigError(
            f"method {method} must be trained by one process, got {n}: its work cannot be divided among them; start it "
            "without torchrun, and it uses all cores"
        )


def is_main_process() -> bool:
    """Return whether this process is the first one of its training, or the only one."""
    return process_number() == 0
