from __future__ import annotations

import pytest
import torch

from longtail.nn.heads.shards import n_processes_here, rows_here, shards_of
from longtail.nn.heads.table import LabelTable, LabelTableOptions


def rows_of_all(n_rows: int, group: int, n_ranks: int) -> list[range]:
    made = []
    for rank in range(n_ranks):
        with shards_of(rank, n_ranks):
            made.append(rows_here(n_rows, group))
    return made


@pytest.mark.parametrize(("n_rows", "group", "n_ranks"), [(11, 1, 2), (12, 3, 4), (100, 5, 3), (7, 1, 7)])
def test_processes_hold_all_rows_once_in_whole_groups(n_rows: int, group: int, n_ranks: int) -> None:
    rows = rows_of_all(n_rows, group, n_ranks)
    assert [row for some in rows for row in some] == list(range(n_rows))
    assert all(some.start % group == 0 for some in rows)
    sizes = [len(some) // group for some in rows]
    assert max(sizes) - min(sizes) <= 1


def test_fewer_groups_than_processes_are_held_by_all() -> None:
    assert rows_of_all(6, 3, 4) == [range(6)] * 4


def test_a_single_process_holds_all_rows() -> None:
    assert rows_here(9) == range(9)
    assert n_processes_here() == 1


def test_a_process_draws_the_same_weights_as_the_whole_table() -> None:
    def table(sharded: bool) -> LabelTable:
        torch.manual_seed(0)
        return LabelTable(11, 4, LabelTableOptions(), sharded=sharded)

    whole = table(sharded=False)
    parts = []
    for rank in range(3):
        with shards_of(rank, 3):
            parts.append(table(sharded=True))
            assert torch.equal(table(sharded=False).weight, whole.weight)
    assert torch.equal(torch.cat([part.weight for part in parts]), whole.weight)


def test_rows_of_some_labels_cannot_be_used_outside_of_their_training() -> None:
    with shards_of(0, 2):
        table = LabelTable(8, 4, LabelTableOptions(), sharded=True)
    with pytest.raises(ValueError, match="can be used in their training only"):
        table.of_all_processes(torch.zeros(2, 1))
