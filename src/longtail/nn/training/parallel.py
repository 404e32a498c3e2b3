"""Exchange between the processes that train one network, each with its part of every batch.

    works of this process  ->  one work per process, in the same order on all of them

`accelerate` adds up the gradients of parameters. Tables train themselves, from the vectors and targets of a step or
from the rows that texts touched, which is far less than a gradient of all rows. So these are sent to every process, and
each makes the same update of its own copy of the table. Every kind of work knows how to gather itself
(`RowWork.gather`) with the help of an `Exchange`.

Sizes and targets are known on the host and travel between hosts, tensors travel between devices: no host waits for a
device to learn how much there is. Tensors of different length are padded, sent as bytes, and cut again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Targets


class Exchange:
    """Brings together what all processes of a training have. All of them must make the same calls."""

    @property
    def rank(self) -> int:
        """Return the number of this process."""
        return dist.get_rank()

    @property
    def n_ranks(self) -> int:
        """Return the number of processes."""
        return dist.get_world_size()

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum of a tensor of the same shape in each process."""
        dist.all_reduce(values)
        return values

    def arrays(self, numbers: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return the array of each process; all have the same length."""
        sent = torch.from_numpy(np.ascontiguousarray(numbers, np.int64))
        received = [torch.empty_like(sent) for _ in range(dist.get_world_size())]
        dist.all_gather(received, sent, group=_hosts())
        return [array.numpy() for array in received]

    def rows(self, columns: Sequence[Sequence[Tensor]], counts: Sequence[int]) -> list[list[Tensor]]:
        """Return the tensors of each process, one per column, with `counts[process]` rows.

        A column is one tensor of this process, in micro-batches.
        """
        whole = [torch.cat(list(column)) for column in columns]
        flat = [
            tensor.reshape(len(tensor), math.prod(tensor.shape[1:])).contiguous().view(torch.uint8) for tensor in whole
        ]
        sent = torch.cat(flat, 1)
        sent = F.pad(sent, (0, 0, 0, max(counts) - len(sent)))
        received = [torch.empty_like(sent) for _ in counts]
        dist.all_gather(received, sent)
        widths = [tensor.shape[1] for tensor in flat]
        return [
            [
                cut.flatten().clone().view(like.dtype).view(count, *like.shape[1:])
                for cut, like in zip(numbers[:count].split(widths, 1), whole, strict=True)
            ]
            for numbers, count in zip(received, counts, strict=True)
        ]

    def targets(self, micro_batches: Sequence[Targets]) -> list[Targets]:
        """Return the targets, or votes, of each process."""
        mine = Targets.joined(micro_batches)
        sizes = [(int(n_texts), int(n)) for n_texts, n in self.arrays(np.array([mine.n_texts, len(mine.host_labels)]))]
        flat = np.concatenate([mine.texts, mine.host_rows, mine.host_labels])
        longest = max(n_texts + 2 * n for n_texts, n in sizes)
        received = self.arrays(np.pad(flat, (0, longest - len(flat))))
        values: list[list[Any]] = [[None]] * len(sizes)
        if mine.values is not None:
            values = self.rows([[mine.values]], [n for _, n in sizes])
        gathered = []
        for (n_texts, n), numbers, (value,) in zip(sizes, received, values, strict=True):
            texts, rows, labels = np.split(numbers[: n_texts + 2 * n], [n_texts, n_texts + n])
            gathered.append(Targets.of_pairs(rows, labels, texts, value).to(mine.rows.device))
        return gathered


def of_main(value: float) -> float:
    """Return the number that the main process has, on all of them."""
    sent = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(sent, 0, group=_hosts())
    return float(sent)


def await_all() -> None:
    """Wait until all processes are here."""
    dist.barrier(group=_hosts())


def same_everywhere(value: int) -> bool:
    """Return whether all processes have the same number."""
    return len({int(other[0]) for other in Exchange().arrays(np.array([value]))}) == 1


@cache
def _hosts() -> Any:
    """Return a process group between hosts: the default one if it works on hosts, else one more."""
    return None if dist.get_backend() == "gloo" else dist.new_group(backend="gloo")
