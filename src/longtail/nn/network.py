"""An encoder and a head: all that the trainer sees.

batch  ->  text vectors (B, width)  ->  dropout  ->  head
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, Step
from longtail.nn.heads.table import LabelTable
from longtail.nn.precision import lightened
from longtail.nn.rows import RowTable
from longtail.run import Precision

_NO_DECAY = ("bias", "norm")


class Network(nn.Module):
    """Texts in; a loss or the best labels out."""

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoder, self.head, self.dropout = encoder, head, nn.Dropout(dropout)
        self.encode: Callable[..., Tensor] | None = None
        """Stands for the encoder in training where that is faster."""

    def forward(self, batch: Batch, share: float = 1.0, show: bool = False) -> Tensor:
        """The loss of a batch; see `Head.loss`."""
        if batch.targets is None:
            raise ValueError("a loss needs targets")
        vectors = self.dropout((self.encode or self.encoder)(*batch.inputs))
        return self.head.loss(vectors, batch.targets, share, show, **_voted(batch))

    def top_k(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Scores and places of the best labels."""
        return self.head.top_k(self.encoder(*batch.inputs), k, **_voted(batch))

    def lightened(self, precision: Precision) -> Network:
        """The same head behind a lighter copy of the encoder: for use."""
        return Network(lightened(self.encoder, precision), self.head)

    def groups(self, rates: Mapping[str, float], decay: float) -> list[dict[str, object]]:
        """Parameters by learning rate (`encoder`, and what the head names) and by whether they decay."""
        found: dict[tuple[str, bool], list[nn.Parameter]] = {}
        for name, parameter in self.named_parameters():
            if not parameter.requires_grad:
                continue
            part, _, rest = name.partition(".")
            group = self.head.group_of(rest) if part == "head" else self.encoder.group_of(rest)
            decays = not any(word in name.lower() for word in _NO_DECAY) and parameter.ndim > 1
            found.setdefault((group, decays), []).append(parameter)
        return [
            {"params": parameters, "lr": rates[group], "weight_decay": decay if decays else 0.0, "name": group}
            for (group, decays), parameters in found.items()
        ]

    def tables(self) -> dict[str, LabelTable | RowTable]:
        """What trains itself, by a name of its own."""
        return {**self.encoder.tables(), **self.head.tables()}

    def step(self, step: Step) -> None:
        """Update what trains itself."""
        self.encoder.step(step)
        self.head.step(step)

    def forget(self) -> None:
        """Drop what it was given since the last step."""
        self.encoder.forget()
        self.head.forget()

    def trained(self) -> dict[str, Tensor]:
        """The weights that training changes, those that parts train themselves among them."""
        own = {id(parameter) for parameter in self.head.parameters()}
        own |= {id(table.weight) for table in self.encoder.tables().values()}
        return {n: p for n, p in self.named_parameters() if p.requires_grad or id(p) in own}


def _voted(batch: Batch) -> dict[str, Any]:
    """Votes for a head that is given some."""
    return {} if batch.votes is None else {"votes": batch.votes}


def device_of(network: nn.Module) -> torch.device:
    """Where a network is."""
    return next(network.parameters()).device
