"""Checkpoints: everything that a training run needs to continue.

Weights, optimiser state, averages, the best weights so far, and counters. Random numbers of a step depend on seed and
step, so no state of a random generator is kept.

Of several processes, the main one writes what all have, and each writes the rows of label tables that it alone has:

    training            what all have, written last       training-STEP-RANK   rows of one process, and where they begin

Any number of processes can go on from it: each reads the rows that it holds, from one part or from several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from longtail.nn.heads.table import LabelTable
from longtail.nn.network import Network, device_of
from longtail.nn.state import to_arrays, to_tensors
from longtail.nn.training.averaging import Averager
from longtail.persist import Folder, FolderWriter
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


def save(stages: Stages, kept: Kept, n_parts: int = 0) -> None:
    """Write a checkpoint; the one before is kept until this one is complete.

    `n_parts` processes have written what they alone have (`save_part`); it is left out here.
    """
    alone = kept.network.sharded()

    def write(writer: FolderWriter) -> None:
        for kind, tensors in _tensors(kept).items():
            writer.arrays(kind, to_arrays({n: t for n, t in tensors.items() if table_of(alone, kind, n) is None}))
        best = kept.at.best if math.isfinite(kept.at.best) else None
        writer.manifest |= {
            "at": {**vars(kept.at), "best": best},
            "n_averaged": kept.averager.n,
            "scaler": kept.scaler.state_dict() if kept.scaler is not None else None,
            "n_parts": n_parts,
        }

    stages.put(_STAGE, write)
    stages.drop_parts(_STAGE, but=f"{_STAGE}-{kept.at.step}-")


def save_part(stages: Stages, kept: Kept, rank: int) -> None:
    """Write the rows of label tables that this process alone has."""
    alone = kept.network.sharded()

    def write(writer: FolderWriter) -> None:
        for kind, tensors in _tensors(kept).items():
            writer.arrays(kind, to_arrays({n: t for n, t in tensors.items() if table_of(alone, kind, n) is not None}))
        writer.manifest["starts"] = {name: table.rows.start for name, table in alone.items()}

    stages.put_part(f"{_STAGE}-{kept.at.step}-{rank}", write)


def load(stages: Stages, kept: Kept) -> tuple[Progressed, dict[str, Tensor] | None] | None:
    """Load the last checkpoint into network, optimiser and averager, whichever processes wrote it.

    Return how far training was and the best weights so far, or None if there is no checkpoint.
    """
    folder = stages.get(_STAGE)
    if folder is None:
        return None
    device, at = device_of(kept.network), folder.manifest["at"]
    folders = [stages.get(f"{_STAGE}-{at['step']}-{rank}") for rank in range(folder.manifest.get("n_parts", 0))]
    if not all(folders):
        return None  # damaged on disk
    read = _Reader(folder, [part for part in folders if part is not None], kept.network)
    copy_into(read.tensors("weights"), kept.network.trained())
    if kept.optimizer is not None:
        _load_state(kept.optimizer, read.tensors("optimizer"))
    for name, table in kept.network.tables().items():
        table.load_state(read.tensors(f"table-{name}"))
    kept.recent_norms.copy_(read.tensors("norms")["recent"])
    kept.averager.n = folder.manifest["n_averaged"]
    kept.averager.average = {name: value.to(device, copy=True) for name, value in read.tensors("average").items()}
    if kept.scaler is not None and folder.manifest["scaler"]:
        kept.scaler.load_state_dict(folder.manifest["scaler"])
    at["best"] = -math.inf if at["best"] is None else at["best"]
    best = {name: value.to(device, copy=True) for name, value in read.tensors("best").items()}
    return Progressed(**at), best or None


def _tensors(kept: Kept) -> dict[str, dict[str, Tensor]]:
    """Return all tensors of a checkpoint, by kind and name."""
    return {
        "weights": dict(kept.network.trained()),
        "optimizer": _state_of(kept.optimizer) if kept.optimizer else {},
        **{f"table-{name}": table.state() for name, table in kept.network.tables().items()},
        "norms": {"recent": kept.recent_norms},
        "average": kept.averager.average,
        "best": kept.best_weights or {},
    }


def table_of(tables: Mapping[str, LabelTable], kind: str, name: str) -> str | None:
    """Return the name of the table that a tensor of a checkpoint has a row of each label of; None for others."""
    for key in tables:
        if kind == f"table-{key}" and name != "n_updates":
            return key
        if kind in ("weights", "average", "best") and name.startswith(f"head.{key}."):
            return key
    return None


class _Reader:
    """Reads the tensors of a checkpoint, with those rows of label tables that this process holds."""

    def __init__(self, folder: Folder, parts: Sequence[Folder], network: Network) -> None:
        self.folder, self.parts = folder, parts
        tables = network.head.tables().items()
        self.tables = {name: table for name, table in tables if isinstance(table, LabelTable)}

    def tensors(self, kind: str) -> dict[str, Tensor]:
        """Return the tensors of a kind by name; they stay on disk until they are used."""
        tensors = {}
        for name, tensor in to_tensors(self.folder.arrays(kind)).items():
            key = table_of(self.tables, kind, name)
            tensors[name] = tensor if key is None else self._rows(key, [(0, tensor)])
        pieces: dict[str, list[tuple[int, Tensor]]] = {}
        for part in self.parts:
            for name, tensor in to_tensors(part.arrays(kind)).items():
                key = table_of(self.tables, kind, name)
                pieces.setdefault(name, []).append((part.manifest["starts"][key], tensor))
        for name, some in pieces.items():
            tensors[name] = self._rows(table_of(self.tables, kind, name) or "", some)
        return tensors

    def _rows(self, key: str, pieces: Sequence[tuple[int, Tensor]]) -> Tensor:
        """Return the rows that this process holds, from pieces that begin at certain rows."""
        rows = self.tables[key].rows
        chosen = [
            piece[max(0, rows.start - start) : max(0, rows.stop - start)]
            for start, piece in sorted(pieces, key=lambda item: item[0])
        ]
        return chosen[0] if len(chosen) == 1 else torch.cat(chosen)


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
