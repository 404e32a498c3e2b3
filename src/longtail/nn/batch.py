"""The input of a training step: token ids, and the labels of the batch as ragged ids.

    Batch   ids (B, T), mask (B, T) or None, scope (B, S) or None, targets
            or packed, one text after the other: ids (N,), edges (B + 2,), targets
    Targets rows (n,), labels (n,): text `rows[i]` of the batch has label `labels[i]`; sorted by label

Votes are targets with a value each, which is added to the logits of labels before anything is learned.

The ids of targets are also kept on the host, so that computing shapes and splits never makes the device wait.
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
"""The smallest width of a scope."""


@dataclass(frozen=True, eq=False)
class Targets:
    """Which texts of a batch have which labels."""

    rows: Tensor  # (n,) int64, on the device
    labels: Tensor  # (n,) int64, on the device, ascending
    host_rows: NDArray[np.int64]  # (n,)
    host_labels: NDArray[np.int64]  # (n,)
    n_texts: int
    texts: NDArray[np.int64]  # (n_texts,) numbers of the training texts
    values: Tensor | None = None  # (n,) float32: what a vote adds, or how much a target counts; None: targets count 1

    @classmethod
    def of(cls, labels: LabelMatrix, texts: NDArray[np.int64]) -> Targets:
        """Return the labels of the given texts, on the host."""
        chosen = labels.take(texts)
        return cls._on_host(chosen.indptr, chosen.indices, texts)

    @classmethod
    def votes(cls, votes: Any, texts: NDArray[np.int64]) -> Targets:
        """Return what is added to the logits of the given texts, on the host; `votes` is sparse (n, n_labels)."""
        chosen = votes[texts]
        return cls._on_host(chosen.indptr, chosen.indices, texts, chosen.data)

    @classmethod
    def _on_host(
        cls, ptr: NDArray[Any], labels: NDArray[Any], texts: NDArray[np.int64], values: NDArray[Any] | None = None
    ) -> Targets:
        """Sort CSR rows of labels, and their values, by label."""
        order = np.argsort(labels, kind="stable")
        host_rows = np.repeat(np.arange(len(texts)), np.diff(ptr))[order]
        host_labels = labels[order].astype(np.int64)
        return cls(
            rows=torch.from_numpy(host_rows),
            labels=torch.from_numpy(host_labels),
            host_rows=host_rows,
            host_labels=host_labels,
            n_texts=len(texts),
            texts=texts,
            values=None if values is None else torch.from_numpy(values[order]),
        )

    def to(self, device: torch.device) -> Targets:
        """Return a copy on a device."""
        values = None if self.values is None else _on(device, self.values)
        return replace(self, rows=_on(device, self.rows), labels=_on(device, self.labels), values=values)

    def part(self, start: int, stop: int) -> Targets:
        """Return the targets of the texts `start` to `stop` of the batch."""
        inside = np.flatnonzero((self.host_rows >= start) & (self.host_rows < stop))
        host_rows, host_labels = self.host_rows[inside] - start, self.host_labels[inside]
        return Targets(
            rows=torch.from_numpy(host_rows),
            labels=torch.from_numpy(host_labels),
            host_rows=host_rows,
            host_labels=host_labels,
            n_texts=stop - start,
            texts=self.texts[start:stop],
            values=None if self.values is None else self.values[torch.from_numpy(inside)],
        )

    def spans(self, edges: NDArray[np.int64]) -> list[tuple[int, int]]:
        """Return where the targets of the labels between each two `edges` begin and end."""
        cuts = np.searchsorted(self.host_labels, edges)
        return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))

    def dense(self, n_labels: int) -> Tensor:
        """Return a 0/1 matrix (n_texts, n_labels), for references and small label sets."""
        matrix = torch.zeros(self.n_texts, n_labels, device=self.rows.device)
        matrix[self.rows, self.labels] = 1
        return matrix


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of one step."""

    ids: Tensor  # (B, T) int64
    mask: Tensor | None  # (B, T) bool; None where nothing is padded
    targets: Targets | None = None
    scope: Tensor | None = None  # (B, S) int64, padded like ids; None where encoders read texts alone
    edges: Tensor | None = None  # (B + 2,) int32: where packed texts begin, where the last one ends, and N
    multiple: int = 1
    """The N of packed texts is a multiple of this, so that there are few shapes."""
    votes: Targets | None = None
    clusters: Tensor | None = None  # (B, n) int64: clusters that an earlier level recalled, −1 where there are fewer
    log_scores: Tensor | None = None  # (B, n) float32: their log scores

    @classmethod
    def of(
        cls, tokens: TokenRows, texts: NDArray[np.int64], width: int, pad_id: int, labels: LabelMatrix | None = None
    ) -> Batch:
        """Return the given texts, padded to `width`, on the host."""
        ids, lengths = tokens.padded(texts, width, pad_id)
        full = bool((lengths == width).all())
        mask = None if full else torch.from_numpy(np.arange(width) < lengths[:, None])
        scope = None if tokens.scope is None else _scope(tokens.scope, texts, pad_id)
        batch = cls(torch.from_numpy(ids), mask, Targets.of(labels, texts) if labels else None, scope)
        return batch._with_extras(tokens, texts)

    @classmethod
    def packed(
        cls, tokens: TokenRows, texts: NDArray[np.int64], multiple: int, labels: LabelMatrix | None = None
    ) -> Batch:
        """Return the given texts one after the other, on the host."""
        chosen = TokenRows(tokens.ids, tokens.ptr).take(texts)
        ids, targets = torch.from_numpy(chosen.ids.astype(np.int32)), Targets.of(labels, texts) if labels else None
        return _packed(ids, torch.from_numpy(chosen.ptr), multiple, targets)._with_extras(tokens, texts)

    def _with_extras(self, tokens: TokenRows, texts: NDArray[np.int64]) -> Batch:
        """Add votes and recalled clusters, where the texts have some."""
        votes = None if tokens.votes is None else Targets.votes(tokens.votes, texts)
        if tokens.clusters is None or tokens.log_scores is None:
            return self if votes is None else replace(self, votes=votes)
        clusters = torch.from_numpy(tokens.clusters[texts].astype(np.int64))
        return replace(self, votes=votes, clusters=clusters, log_scores=torch.from_numpy(tokens.log_scores[texts]))

    def __len__(self) -> int:
        return int(self.ids.shape[0] if self.edges is None else self.edges.shape[0] - 2)

    @property
    def inputs(self) -> tuple[Tensor | None, ...]:
        """The arguments of the encoder."""
        if self.edges is not None:
            return self.ids, self.edges
        return (self.ids, self.mask) if self.scope is None else (self.ids, self.mask, self.scope)

    def to(self, device: torch.device) -> Batch:
        """Return a copy on a device, without waiting for it."""
        targets, votes = (pairs.to(device) if pairs else None for pairs in (self.targets, self.votes))
        mask, edges, clusters, log_scores = (
            None if tensor is None else _on(device, tensor)
            for tensor in (self.mask, self.edges, self.clusters, self.log_scores)
        )
        scope = None if self.scope is None else _on(device, self.scope).long()
        ids = _on(device, self.ids).long()
        moved = Batch(ids, mask, targets, scope, edges, self.multiple, votes=votes)
        return replace(moved, clusters=clusters, log_scores=log_scores)

    def part(self, start: int, stop: int) -> Batch:
        """Return the texts `start` to `stop` of a batch on the host."""
        targets, votes = (pairs.part(start, stop) if pairs else None for pairs in (self.targets, self.votes))
        if self.edges is not None:
            ptr = self.edges[start : stop + 1]
            batch = _packed(self.ids[ptr[0] : ptr[-1]], ptr - ptr[0], self.multiple, targets)
        else:
            mask, scope = (None if tensor is None else tensor[start:stop] for tensor in (self.mask, self.scope))
            batch = Batch(self.ids[start:stop], mask, targets, scope)
        clusters, log_scores = (
            None if tensor is None else tensor[start:stop] for tensor in (self.clusters, self.log_scores)
        )
        return replace(batch, votes=votes, clusters=clusters, log_scores=log_scores)


def _packed(ids: Tensor, ptr: Tensor, multiple: int, targets: Targets | None) -> Batch:
    """Return packed texts, padded at their end to a multiple of ids, by at least one."""
    n_ids = (len(ids) // multiple + 1) * multiple
    filled = torch.nn.functional.pad(ids, (0, n_ids - len(ids)))
    edges = torch.cat([ptr, torch.tensor([n_ids])]).int()
    return Batch(filled, None, targets, edges=edges, multiple=multiple)


def _on(device: torch.device, tensor: Tensor) -> Tensor:
    """Return a copy on a device, without waiting for it."""
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def _scope(scope: TokenRows, texts: NDArray[np.int64], pad_id: int) -> Tensor:
    """Return the second input of texts, (B, S); S is a power of two, so that there are few shapes."""
    longest = int((scope.ptr[texts + 1] - scope.ptr[texts]).max(initial=1))
    width = max(_LEAST_SCOPE, 1 << (longest - 1).bit_length())
    return torch.from_numpy(scope.padded(texts, width, pad_id)[0])
