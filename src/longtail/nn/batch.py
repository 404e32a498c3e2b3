"""What a training step is given: token ids and the labels of the batch, as ragged ids.

    Batch   ids (B, T), mask (B, T) or None, scope (B, S) or None, targets
            or packed, one text after the other: ids (N,), edges (B + 2,), targets
    Targets rows (n,), labels (n,): text `rows[i]` of the batch has label `labels[i]`; sorted by label

Votes are targets with a value each: what is added to the logits of labels before anything is learned.

The ids of targets are also at hand on the host, so that shapes and cuts never make the device wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

_LEAST_SCOPE = 64
"""No scope is narrower."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Which texts of a batch have which labels."""

    rows: Tensor  # (n,) int64, on the device
    labels: Tensor  # (n,) int64, on the device, ascending
    host_rows: NDArray[np.int64]  # (n,)
    host_labels: NDArray[np.int64]  # (n,)
    n_texts: int
    texts: NDArray[np.int64]  # (n_texts,) which training texts these are
    values: Tensor | None = None  # (n,) float32; of votes alone

    @classmethod
    def of(cls, labels: LabelMatrix, texts: NDArray[np.int64]) -> Targets:
        """The labels of the given texts, on the host."""
        own = labels.take(texts)
        rows = np.repeat(np.arange(len(texts)), own.labels_per_text())
        order = np.argsort(own.indices, kind="stable")
        host_rows, host_labels = rows[order], own.indices[order].astype(np.int64)
        return cls(
            torch.from_numpy(host_rows), torch.from_numpy(host_labels), host_rows, host_labels, len(texts), texts
        )

    @classmethod
    def votes(cls, votes: Any, texts: NDArray[np.int64]) -> Targets:
        """What is added to the logits (n_texts, n_labels; sparse) of the given texts, on the host."""
        own = votes[texts]
        order = np.argsort(own.indices, kind="stable")
        rows = np.repeat(np.arange(len(texts)), np.diff(own.indptr))[order]
        labels, values = own.indices[order].astype(np.int64), torch.from_numpy(own.data[order])
        return cls(torch.from_numpy(rows), torch.from_numpy(labels), rows, labels, len(texts), texts, values)

    def to(self, device: torch.device) -> Targets:
        """On a device."""
        values = None if self.values is None else _on(device, self.values)
        return replace(self, rows=_on(device, self.rows), labels=_on(device, self.labels), values=values)

    def part(self, start: int, stop: int) -> Targets:
        """Those of the texts `start` to `stop` of the batch."""
        inside = np.flatnonzero((self.host_rows >= start) & (self.host_rows < stop))
        host_rows, host_labels = self.host_rows[inside] - start, self.host_labels[inside]
        rows, labels = torch.from_numpy(host_rows), torch.from_numpy(host_labels)
        values = None if self.values is None else self.values[torch.from_numpy(inside)]
        return Targets(rows, labels, host_rows, host_labels, stop - start, self.texts[start:stop], values)

    def spans(self, edges: NDArray[np.int64]) -> list[tuple[int, int]]:
        """For neighbouring labels between each two `edges`: where their targets begin and end."""
        cuts = np.searchsorted(self.host_labels, edges)
        return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def dense(self, n_labels: int) -> Tensor:
        """As a 0/1 matrix (n_texts, n_labels): for references and small label sets."""
        made = torch.zeros(self.n_texts, n_labels, device=self.rows.device)
        made[self.rows, self.labels] = 1
        return made


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of one step."""

    ids: Tensor  # (B, T) int64
    mask: Tensor | None  # (B, T) bool; None where nothing is padded
    targets: Targets | None = None
    scope: Tensor | None = None  # (B, S) int64, padded as ids; None where encoders read texts alone
    edges: Tensor | None = None  # (B + 2,) int32: where packed texts begin, where the last one ends, and N
    multiple: int = 1
    """N of packed texts is a multiple of this: few shapes."""
    votes: Targets | None = None

    @classmethod
    def of(
        cls, tokens: TokenRows, texts: NDArray[np.int64], width: int, pad_id: int, labels: LabelMatrix | None = None
    ) -> Batch:
        """The given texts, padded to `width`, on the host."""
        ids, lengths = tokens.padded(texts, width, pad_id)
        full = bool((lengths == width).all())
        mask = None if full else torch.from_numpy(np.arange(width) < lengths[:, None])
        scope = None if tokens.scope is None else _scope(tokens.scope, texts, pad_id)
        made = cls(torch.from_numpy(ids), mask, Targets.of(labels, texts) if labels else None, scope)
        return made._with_votes(tokens, texts)

    @classmethod
    def packed(
        cls, tokens: TokenRows, texts: NDArray[np.int64], multiple: int, labels: LabelMatrix | None = None
    ) -> Batch:
        """The given texts one after the other, on the host."""
        own = replace(tokens, scope=None, votes=None).take(texts)
        ids = torch.from_numpy(own.ids.astype(np.int32))
        made = _packed(ids, torch.from_numpy(own.ptr), multiple, Targets.of(labels, texts) if labels else None)
        return made._with_votes(tokens, texts)

    def _with_votes(self, tokens: TokenRows, texts: NDArray[np.int64]) -> Batch:
        return self if tokens.votes is None else replace(self, votes=Targets.votes(tokens.votes, texts))

    def __len__(self) -> int:
        return int(self.ids.shape[0] if self.edges is None else self.edges.shape[0] - 2)

    @property
    def inputs(self) -> tuple[Tensor | None, ...]:
        """What the encoder is given."""
        if self.edges is not None:
            return self.ids, self.edges
        return (self.ids, self.mask) if self.scope is None else (self.ids, self.mask, self.scope)

    def to(self, device: torch.device) -> Batch:
        """On a device, without waiting for it."""
        targets, votes = (part.to(device) if part else None for part in (self.targets, self.votes))
        mask, edges = (None if part is None else _on(device, part) for part in (self.mask, self.edges))
        scope = None if self.scope is None else _on(device, self.scope).long()
        ids = _on(device, self.ids).long()
        return replace(self, ids=ids, mask=mask, targets=targets, scope=scope, edges=edges, votes=votes)

    def part(self, start: int, stop: int) -> Batch:
        """Texts `start` to `stop`, of a batch on the host."""
        targets, votes = (part.part(start, stop) if part else None for part in (self.targets, self.votes))
        if self.edges is not None:
            ptr = self.edges[start : stop + 1]
            made = _packed(self.ids[ptr[0] : ptr[-1]], ptr - ptr[0], self.multiple, targets)
            return replace(made, votes=votes)
        mask, scope = (None if part is None else part[start:stop] for part in (self.mask, self.scope))
        return Batch(self.ids[start:stop], mask, targets, scope, votes=votes)


def _packed(ids: Tensor, ptr: Tensor, multiple: int, targets: Targets | None) -> Batch:
    """Texts that lie one after the other, filled up to a round number of ids, by one at least."""
    n_ids = (len(ids) // multiple + 1) * multiple
    filled = torch.nn.functional.pad(ids, (0, n_ids - len(ids)))
    edges = torch.cat([ptr, torch.tensor([n_ids])]).int()
    return Batch(filled, None, targets, edges=edges, multiple=multiple)


def _on(device: torch.device, part: Tensor) -> Tensor:
    """On a device, without waiting for it."""
    return part if device.type == "cpu" else part.pin_memory().to(device, non_blocking=True)


def _scope(scope: TokenRows, texts: NDArray[np.int64], pad_id: int) -> Tensor:
    """The second input of texts, (B, S); S is a power of two, so that there are few shapes."""
    longest = int((scope.ptr[texts + 1] - scope.ptr[texts]).max(initial=1))
    width = max(_LEAST_SCOPE, 1 << (longest - 1).bit_length())
    return torch.from_numpy(scope.padded(texts, width, pad_id)[0])
