"""The input of a training step: token ids, and the labels of the batch as ragged ids.

    Batch   ids (B, T), mask (B, T) or None, scope (B, S) or None, targets
            or packed, one text after the other: ids (N,), edges (B + 2,), targets
    Targets rows (n,), labels (n,): text `rows[i]` of the batch has label `labels[i]`; sorted by label

Votes are targets with a value each, which is added to the logits of labels before anything is learned.

The ids of targets are also kept on the host, so that computing shapes and splits never makes the device wait.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        rows = np.repeat(np.arange(len(texts)), np.diff(ptr))[order]
        weights = None if values is None else torch.from_numpy(values[order])
        return cls.of_pairs(rows, labels[order].astype(np.int64), texts, weights)

    @classmethod
    def of_pairs(
        cls,
        rows: NDArray[np.int64],
        labels: NDArray[np.int64],
        texts: NDArray[np.int64],
        values: Tensor | None = None,
    ) -> Targets:
        """Return targets on the host, from pairs that are sorted by label."""
        return cls(torch.from_numpy(rows), torch.from_numpy(labels), rows, labels, texts, values)

    @classmethod
    def joined(cls, micro_batches: Sequence[Targets]) -> Targets:
        """Return the targets of micro-batches as those of one batch."""
        starts = np.cumsum([0, *(targets.n_texts for targets in micro_batches)])
        rows = np.concatenate([one.host_rows + start for one, start in zip(micro_batches, starts, strict=False)])
        labels = np.concatenate([targets.host_labels for targets in micro_batches])
        order = np.argsort(labels, kind="stable")
        rows, labels, device = rows[order], labels[order], micro_batches[0].rows.device
        texts = np.concatenate([targets.texts for targets in micro_batches])
        whole = cls.of_pairs(rows, labels, texts)
        values = [targets.values for targets in micro_batches if targets.values is not None]
        joined = torch.cat(values)[torch.from_numpy(order).to(device)] if values else None
        return replace(whole.to(device), values=joined)

    @property
    def n_texts(self) -> int:
        """Number of texts, those without labels included."""
        return len(self.texts)

    def to(self, device: torch.device) -> Targets:
        """Return a copy on a device."""
        values = None if self.values is None else on_device(self.values, device)
        return replace(self, rows=on_device(self.rows, device), labels=on_device(self.labels, device), values=values)

    def part(self, start: int, stop: int) -> Targets:
        """Return the targets of the texts `start` to `stop` of the batch."""
        inside = np.flatnonzero((self.host_rows >= start) & (self.host_rows < stop))
        values = None if self.values is None else self.values[torch.from_numpy(inside)]
        return Targets.of_pairs(
            self.host_rows[inside] - start, self.host_labels[inside], self.texts[start:stop], values
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
        packed = _packed(torch.from_numpy(chosen.ids.astype(np.int32)), torch.from_numpy(chosen.ptr), multiple)
        targets = Targets.of(labels, texts) if labels else None
        return cls(**packed, mask=None, targets=targets, multiple=multiple)._with_extras(tokens, texts)

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
        moved: dict[str, Any] = {name: on_device(tensor, device) for name, tensor in self._all(Tensor)}
        moved |= {name: ids.long() for name, ids in moved.items() if name in ("ids", "scope")}
        return replace(self, **moved, **{name: pairs.to(device) for name, pairs in self._all(Targets)})

    def part(self, start: int, stop: int) -> Batch:
        """Return the texts `start` to `stop` of a batch on the host."""
        rows: dict[str, Any] = {name: tensor[start:stop] for name, tensor in self._all(Tensor)}
        if self.edges is not None:
            ptr = self.edges[start : stop + 1]
            rows |= _packed(self.ids[ptr[0] : ptr[-1]], ptr - ptr[0], self.multiple)
        return replace(self, **rows, **{name: pairs.part(start, stop) for name, pairs in self._all(Targets)})

    def _all(self, kind: type) -> list[tuple[str, Any]]:
        """Return the fields that hold something of a kind."""
        return [(name, value) for name, value in vars(self).items() if isinstance(value, kind)]


def _packed(ids: Tensor, ptr: Tensor, multiple: int) -> dict[str, Any]:
    """Return `ids` and `edges` of packed texts, padded at their end to a multiple of ids, by at least one."""
    n_ids = (len(ids) // multiple + 1) * multiple
    filled = torch.nn.functional.pad(ids, (0, n_ids - len(ids)))
    return {"ids": filled, "edges": torch.cat([ptr, torch.tensor([n_ids])]).int()}


def on_device(values: Tensor | NDArray[Any], device: torch.device) -> Tensor:
    """Return a copy on a device, without waiting for it."""
    tensor = values if isinstance(values, Tensor) else torch.from_numpy(values)
    return tensor if device.type == "cpu" else tensor.pin_memory().to(device, non_blocking=True)


def _scope(scope: TokenRows, texts: NDArray[np.int64], pad_id: int) -> Tensor:
    """Return the second input of texts, (B, S); S is a power of two, so that there are few shapes."""
    longest = int((scope.ptr[texts + 1] - scope.ptr[texts]).max(initial=1))
    width = max(_LEAST_SCOPE, 1 << (longest - 1).bit_length())
    return torch.from_numpy(scope.padded(texts, width, pad_id)[0])
