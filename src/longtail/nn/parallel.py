"""Several processes that train one network, each with its part of every batch.

    works of this process  ->  one work a process, the same ones in the same order on all of them

`accelerate` adds up the gradients of parameters. Tables train themselves: from the vectors and targets of a step, or
from which texts touched which rows, which is far less than a gradient of all rows. So these are sent to every process,
and each makes the same update of its own copy of the table.

What hosts know (sizes, targets) travels between hosts, what devices hold between devices: no host waits for a device to
learn how much there is. Parts of different size are padded, sent as bytes, and cut again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Targets
from longtail.nn.heads.candidates import Fetched, Gathered
from longtail.nn.heads.table import RowWork, Work
from longtail.nn.rows import Touches


def gathered(works: Sequence[Any]) -> list[Any]:
    """What all processes add to a step of a table, one work each, by what this one adds; all must call it."""
    if works and isinstance(works[0], Touches):
        return _touched([work for work in works if isinstance(work, Touches)])
    ranked = [work for work in works if isinstance(work, Gathered)]
    if ranked:
        return _ranked(ranked)
    return _scored([work for work in works if isinstance(work, Work)])


def of_main(value: float) -> float:
    """The number that the main process has, on all of them."""
    sent = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(sent, 0, group=_hosts())
    return float(sent)


def same_everywhere(value: int) -> bool:
    """Whether all processes have the same number."""
    return len({int(other[0]) for other in _from_all(np.array([value]))}) == 1


def _scored(works: Sequence[Work]) -> list[RowWork]:
    """Works above all rows of a table."""
    first = works[0]
    targets = _targets_from_all([work.targets for work in works])
    votes = [work.votes for work in works if work.votes is not None]
    voted: Sequence[Targets | None] = _targets_from_all(votes) if votes else [None] * len(targets)
    names = [name for name in ("vectors", "weights", "allowed", "sums") if getattr(first, name) is not None]
    columns = [[getattr(work, name) for work in works] for name in names]
    found = _rows_from_all(columns, [own.n_texts for own in targets])
    made: list[RowWork] = []
    for own, votes_of_own, numbers in zip(targets, voted, found, strict=True):
        parts: dict[str, Any] = dict(zip(names, numbers, strict=True))
        made.append(Work(targets=own, votes=votes_of_own, n_step=first.n_step * len(targets), **parts))
    return made


def _ranked(works: Sequence[Gathered]) -> list[RowWork]:
    """Works above the candidates of texts; candidates that only fill up have no signal."""
    group = works[0].signal.shape[1] // works[0].clusters.shape[1]
    own = sum(len(work.vectors) for work in works), max(work.clusters.shape[1] for work in works)
    facts = _from_all(np.array(own))
    counts, n = [int(fact[0]) for fact in facts], max(int(fact[1]) for fact in facts)
    columns = [
        [work.vectors for work in works],
        [F.pad(work.clusters, (0, n - work.clusters.shape[1])) for work in works],
        [F.pad(work.signal, (0, n * group - work.signal.shape[1])) for work in works],
    ]
    n_step = works[0].n_step * len(facts)
    return [
        Gathered(vectors, clusters, signal, n_step, Fetched(clusters))
        for vectors, clusters, signal in _rows_from_all(columns, counts)
    ]


def _touched(works: Sequence[Touches]) -> list[Touches]:
    """Touches of rows; each process has its gradients as many times too large as there are processes."""
    own = Touches.joined(works)
    facts = _from_all(np.array([len(own.numbers), len(own.rows)]))
    numbers = _rows_from_all([[own.numbers]], [int(fact[0]) for fact in facts])
    pairs = _rows_from_all([[own.rows], [own.texts], [own.weights]], [int(fact[1]) for fact in facts])
    return [
        Touches(rows, texts, vectors / len(facts), weights)
        for (vectors,), (rows, texts, weights) in zip(numbers, pairs, strict=True)
    ]


def _targets_from_all(parts: Sequence[Targets]) -> list[Targets]:
    """The targets, or votes, of each process, by those of this one's micro-batches."""
    own = _joined(parts)
    facts = [(int(n_texts), int(n)) for n_texts, n in _from_all(np.array([own.n_texts, len(own.host_labels)]))]
    flat = np.concatenate([own.texts, own.host_rows, own.host_labels])
    longest = max(n_texts + 2 * n for n_texts, n in facts)
    known = _from_all(np.pad(flat, (0, longest - len(flat))))
    values: list[list[Any]] = [[None]] * len(facts)
    if own.values is not None:
        values = _rows_from_all([[own.values]], [n for _, n in facts])
    made = []
    for (n_texts, n), numbers, (value,) in zip(facts, known, values, strict=True):
        texts, rows, labels = np.split(numbers[: n_texts + 2 * n], [n_texts, n_texts + n])
        host = torch.from_numpy(rows), torch.from_numpy(labels), rows, labels
        made.append(Targets(*host, n_texts, texts, value).to(own.rows.device))
    return made


def _joined(parts: Sequence[Targets]) -> Targets:
    """The targets of micro-batches as those of one batch."""
    starts = np.cumsum([0, *(part.n_texts for part in parts)])
    rows = np.concatenate([part.host_rows + start for part, start in zip(parts, starts, strict=False)])
    labels = np.concatenate([part.host_labels for part in parts])
    order = np.argsort(labels, kind="stable")
    rows, labels, device = rows[order], labels[order], parts[0].rows.device
    texts = np.concatenate([part.texts for part in parts])
    made = Targets(torch.from_numpy(rows), torch.from_numpy(labels), rows, labels, int(starts[-1]), texts)
    values = [part.values for part in parts if part.values is not None]
    joined = torch.cat(values)[torch.from_numpy(order).to(device)] if values else None
    return replace(made.to(device), values=joined)


def _rows_from_all(columns: Sequence[Sequence[Tensor]], counts: Sequence[int]) -> list[list[Tensor]]:
    """For each process: its tensors, with as many rows as `counts` says; a column is one tensor, in micro-batches."""
    own = [torch.cat(list(parts)) for parts in columns]
    flat = [part.reshape(len(part), -1).contiguous().view(torch.uint8) for part in own]
    sent = torch.cat(flat, 1)
    sent = F.pad(sent, (0, 0, 0, max(counts) - len(sent)))
    found = [torch.empty_like(sent) for _ in counts]
    dist.all_gather(found, sent)
    widths = [part.shape[1] for part in flat]
    return [
        [
            cut.contiguous().view(like.dtype).view(count, *like.shape[1:])
            for cut, like in zip(numbers[:count].split(widths, 1), own, strict=True)
        ]
        for numbers, count in zip(found, counts, strict=True)
    ]


def _from_all(numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """An array of each process; all have the same length."""
    sent = torch.from_numpy(np.ascontiguousarray(numbers, np.int64))
    found = [torch.empty_like(sent) for _ in range(dist.get_world_size())]
    dist.all_gather(found, sent, group=_hosts())
    return [part.numpy() for part in found]


@cache
def _hosts() -> Any:
    """The way from host to host: the processes' own where that is for hosts, else one more."""
    return None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
