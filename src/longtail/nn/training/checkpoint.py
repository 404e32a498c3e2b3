"""Checkpoints: everything that a training run needs to continue.

Weights, optimiser state, averages, the best weights so far, and counters. Random numbers of a step depend on seed and
step, so no state of a random generator is kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from longtail.nn.network import Network, device_of
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.averaging import Averager
from longtail.persist import FolderWriter
from longtail.run.stages import Stages

_STAGE = "training"


@dataclass
class Progressed:
    """How far training has come."""

    step: int = 0
    micro_batch: int = 0
    best: float = -math.inf
    best_step: int = 0
    stale: int = 0
    """Validations since the best one."""
    drops: int = 0
    """Plateaus so far."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Validations: step and score."""


@dataclass(frozen=True)
class Kept:
    """What a checkpoint is made from."""

    network: Network
    optimizer: Any
    averager: Averager
    scaler: Any
    at: Progressed
    best_weights: dict[str, Tensor] | None
    recent_norms: Tensor
    """Of gradients, for clipping; `load` writes into it."""


def save(stages: Stages, kept: Kept) -> None:
    """Write a checkpoint; the one before is kept until this one is complete."""

    def write(writer: FolderWriter) -> None:
        writer.arrays("weights", to_arrays(kept.network.trained()))
        writer.arrays("optimizer", to_arrays(_state_of(kept.optimizer) if kept.optimizer else {}))
        for name, table in kept.network.tables().items():
            writer.arrays(f"table-{name}", to_arrays(table.state()))
        writer.arrays("norms", to_arrays({"recent": kept.recent_norms}))
        writer.arrays("average", to_arrays(kept.averager.average))
        writer.arrays("best", to_arrays(kept.best_weights or {}))
        best = kept.at.best if math.isfinite(kept.at.best) else None
        writer.manifest |= {
            "at": {**vars(kept.at), "best": best},
            "n_averaged": kept.averager.n,
            "scaler": kept.scaler.state_dict() if kept.scaler is not None else None,
        }

    stages.put(_STAGE, write)


def load(stages: Stages, kept: Kept) -> tuple[Progressed, dict[str, Tensor] | None] | None:
    """Load the last checkpoint into network, optimiser and averager.

    Return how far training was and the best weights so far, or None if there is no checkpoint.
    """
    folder = stages.get(_STAGE)
    if folder is None:
        return None
    device = device_of(kept.network)
    tensors = {name: to_tensors(folder.arrays(name)) for name in ("weights", "optimizer", "average", "best")}
    copy_into(tensors["weights"], kept.network.trained())
    if kept.optimizer is not None:
        _load_state(kept.optimizer, tensors["optimizer"])
    for name, table in kept.network.tables().items():
        table.load_state(to_tensors(folder.arrays(f"table-{name}")))
    kept.recent_norms.copy_(to_tensors(folder.arrays("norms"))["recent"])
    kept.averager.n = folder.manifest["n_averaged"]
    kept.averager.average = {name: value.to(device, copy=True) for name, value in tensors["average"].items()}
    if kept.scaler is not None and folder.manifest["scaler"]:
        kept.scaler.load_state_dict(folder.manifest["scaler"])
    at = folder.manifest["at"]
    at["best"] = -math.inf if at["best"] is None else at["best"]
    best = {name: value.to(device, copy=True) for name, value in tensors["best"].items()}
    return Progressed(**at), best or None


def copy_into(source: Mapping[str, Tensor], target: Mapping[str, Tensor]) -> None:
    """Overwrite weights by name."""
    with torch.no_grad():
        for name, value in source.items():
            target[name].copy_(value)


def finite(network: Network) -> bool:
    """Return whether all trained weights are finite."""
    return all(bool(torch.isfinite(value.sum())) for value in network.trained().values())


def _state_of(optimizer: Any) -> dict[str, Tensor]:
    """Return the optimiser's state, by number of parameter."""
    state: dict[str, Tensor] = {}
    number = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            for name, value in optimizer.state.get(parameter, {}).items():
                state[f"{number}.{name}"] = torch.as_tensor(value)
            number += 1
    return state


def _load_state(optimizer: Any, state: dict[str, Tensor]) -> None:
    """Restore what `_state_of` returned."""
    number = 0
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            moments = {key.split(".", 1)[1]: t for key, t in state.items() if key.split(".", 1)[0] == str(number)}
            if moments:
                counts_here = group.get("fused") or group.get("capturable")
                optimizer.state[parameter] = {
                    name: value.clone() if name == "step" and not counts_here else value.to(parameter.device, copy=True)
                    for name, value in moments.items()
                }
            number += 1
