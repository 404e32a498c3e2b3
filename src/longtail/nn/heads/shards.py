"""Which rows of a label table this process holds, where several processes train one network.

    rows 0 … n_rows  ->  process 0: rows 0 … a,  process 1: rows a … b,  …      whole groups, as even as can be

A process holds weights and optimiser state of its own rows only. In training it scores the texts of all processes with
them: text vectors travel (`Exchange`), logits never do. Gradients of text vectors are summed over processes.

Tables are made inside `with shards_of(rank, n_ranks)`; outside of it, and in a single process, they are whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_RANK: ContextVar[tuple[int, int]] = ContextVar("rank", default=(0, 1))


@contextmanager
def shards_of(rank: int, n_ranks: int) -> Iterator[None]:
    """Let tables that are made meanwhile hold the rows of process `rank` of `n_ranks` only."""
    before = _RANK.set((rank, n_ranks))
    try:
        yield
    finally:
        _RANK.reset(before)


def n_processes_here() -> int:
    """Return the number of processes among which rows are divided; 1 outside of `shards_of`."""
    return _RANK.get()[1]


def rows_here(n_rows: int, group: int = 1) -> range:
    """Return the rows that this process holds, in whole groups; all if there are fewer groups than processes."""
    rank, n_ranks = _RANK.get()
    n_groups = n_rows // group
    if n_groups < n_ranks:
        return range(n_rows)
    first, last = (n_groups * number // n_ranks * group for number in (rank, rank + 1))
    return range(first, last)
