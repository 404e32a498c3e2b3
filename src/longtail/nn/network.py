"""A network, which is an encoder and a head: all that the trainer sees.

batch  ->  text vectors (B, width)  ->  dropout  ->  head
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from longtail.errors import ConfigError
from longtail.nn.batch import Batch
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, HeadInputs, Step
from longtail.nn.heads.table import LabelTable
from longtail.nn.precision import quantised
from longtail.nn.rows import RowTable
from longtail.run.run import Precision

_NO_DECAY = ("bias", "norm")


class Network(nn.Module):
    """Turns texts into a loss, or into their best labels."""

    def __init__(self, encoder: Encoder, head: Head, dropout: float = 0.0) -> None:
        super().__init__()
        if encoder.returns_states != head.reads_states:
            output, wanted = (("vectors", "states"), ("states", "vectors"))[encoder.returns_states]
            raise ConfigError(
                f"encoder and head must fit, but {type(encoder).__name__} returns {output} and "
                f"{type(head).__name__} reads {wanted}; choose another encoder or head"
            )
        self.encoder, self.head, self.dropout = encoder, head, nn.Dropout(dropout)
        self.encode: Callable[..., Tensor] | None = None
        """Called instead of the encoder in training where that is faster."""

    def forward(self, batch: Batch, share: float = 1.0, show: bool = False) -> Tensor:
        """Return the loss of a batch, with `share` and `show` as for `Head.loss`."""
        if batch.targets is None:
            raise ValueError("a loss needs targets")
        vectors = self.dropout((self.encode or self.encoder)(*batch.inputs))
        return self.head.loss(self.head_inputs(vectors, batch), batch.targets, share, show)

    def top_k(self, batch: Batch, k: int) -> tuple[Tensor, Tensor]:
        """Return scores and places of the k best labels of each text, (B, k) each."""
        return self.head.top_k(self.read(batch), k)

    def read(self, batch: Batch) -> HeadInputs:
        """Return what the head needs to rank labels, the text vectors among it."""
        return self.head_inputs(self.encoder(*batch.inputs), batch)

    def head_inputs(self, vectors: Tensor, batch: Batch) -> HeadInputs:
        """Return what the head reads: the encoder's output, and what the batch has beside its ids."""
        if batch.votes is not None and not self.head.reads_votes:
            raise ValueError(f"votes must go to a head that reads them, got {type(self.head).__name__}")
        return HeadInputs(
            vectors, mask=batch.mask, votes=batch.votes, clusters=batch.clusters, log_scores=batch.log_scores
        )

    def quantised(self, precision: Precision) -> Network:
        """Return the same head behind a copy of the encoder in another precision, for prediction."""
        return Network(quantised(self.encoder, precision), self.head)

    def groups(self, rates: Mapping[str, float], decay: float) -> list[dict[str, object]]:
        """Return parameter groups by learning rate (`encoder`, and those of the head) and by whether they decay."""
        groups: dict[tuple[str, bool], list[nn.Parameter]] = {}
        for name, parameter in self.named_parameters():
            if not parameter.requires_grad:
                continue
            part, _, rest = name.partition(".")
            group = self.head.group_of(rest) if part == "head" else self.encoder.group_of(rest)
            decays = not any(word in name.lower() for word in _NO_DECAY) and parameter.ndim > 1
            groups.setdefault((group, decays), []).append(parameter)
        return [
            {"params": parameters, "lr": rates[group], "weight_decay": decay if decays else 0.0, "name": group}
            for (group, decays), parameters in groups.items()
        ]

    def tables(self) -> dict[str, LabelTable | RowTable]:
        """Return the tables that update themselves, by name."""
        return {**self.encoder.tables(), **self.head.tables()}

    def begin_step(self, step: Step) -> None:
        """Say that the next batch is a whole step."""
        self.head.begin_step(step)

    def step(self, step: Step) -> None:
        """Update the tables."""
        self.encoder.step(step)
        self.head.step(step)

    def forget(self) -> None:
        """Drop the gradients of tables since the last step."""
        self.encoder.forget()
        self.head.forget()

    def sharded(self) -> dict[str, LabelTable]:
        """Return the label tables of which this process holds some rows only, by attribute of the head."""
        tables = self.head.tables().items()
        return {name: table for name, table in tables if isinstance(table, LabelTable) and table.is_sharded}

    def trained(self) -> dict[str, Tensor]:
        """Return the weights that training changes, those of tables included."""
        updated = {id(parameter) for parameter in self.head.parameters()}
        updated |= {id(table.weight) for table in self.encoder.tables().values()}
        return {n: p for n, p in self.named_parameters() if p.requires_grad or id(p) in updated}


def device_of(network: nn.Module) -> torch.device:
    """Return the device of a network."""
    return next(network.parameters()).device
