"""Rows that train themselves: the same gradients as autograd's, and nothing but touched rows changes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from longtail.nn.rows import RowTable, Touches

N_ROWS, WIDTH = 9, 4


def a_table(seed: int = 0) -> RowTable:
    torch.manual_seed(seed)
    return RowTable(N_ROWS, WIDTH, 1.0)


def a_batch(seed: int, n_texts: int = 5, longest: int = 6) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, which of them are real, and what the loss says of each sum."""
    draw = torch.Generator().manual_seed(seed)
    ids = torch.randint(N_ROWS - 2, (n_texts, longest), generator=draw)  # the last two rows are never touched
    real = torch.rand(n_texts, longest, generator=draw) < 0.7
    return ids, real, torch.randn(n_texts, WIDTH, generator=draw)


def dense_gradient(table: RowTable, ids: Tensor, real: Tensor, upper: Tensor) -> Tensor:
    weight = table.weight.detach().clone().requires_grad_()
    sums = (functional.embedding(ids, weight) * real[..., None]).sum(1)
    (found,) = torch.autograd.grad((sums * upper).sum(), weight)
    return found


def adagrad(weight: Tensor, gradients: list[Tensor], rate: float) -> Tensor:
    """As in a textbook, over all rows, with one number a row."""
    squares = torch.zeros(len(weight))
    for gradient in gradients:
        squares += gradient.square().mean(1)
        weight = weight - rate * gradient / (squares.sqrt() + 1e-10)[:, None]
    return weight


@settings(max_examples=30)
@given(st.integers(0, 1000), st.integers(1, 5))
def test_a_step_is_adagrads_with_one_number_a_row(seed: int, cut: int) -> None:
    table, expected = a_table(seed), []
    start = table.weight.clone()
    for step in range(3):
        ids, real, upper = a_batch(seed + step)
        expected.append(dense_gradient(table, ids, real, upper))
        for part in (slice(0, cut), slice(cut, None)):  # in micro-batches
            if len(ids[part]):
                (table.sums(ids[part], real[part]) * upper[part]).sum().backward()
        table.update(0.3)
    assert torch.allclose(table.weight, adagrad(start, expected, 0.3), atol=1e-5)
    assert torch.equal(table.weight[-2:], start[-2:])


def test_sums_leave_out_what_is_not_real_and_keep_nothing_in_use() -> None:
    table, (ids, real, _) = a_table(), a_batch(1)
    expected = (table.weight[ids] * real[..., None]).sum(1)
    with torch.no_grad():
        assert torch.allclose(table.sums(ids, real), expected, atol=1e-6)
    made = table.sums(ids, real)
    assert torch.allclose(made, expected, atol=1e-6)
    assert made.requires_grad
    assert table.works == []


def test_a_step_without_works_changes_nothing() -> None:
    table = a_table()
    before = table.weight.clone()
    table.update(1.0)
    assert torch.equal(table.weight, before)


def test_only_touched_rows_decay() -> None:
    table = a_table()
    before = table.weight.clone()
    table.works = [Touches(torch.tensor([3, 3]), torch.tensor([0, 1]), torch.zeros(2, WIDTH), torch.ones(2))]
    table.update(0.5, decay=0.1)
    assert torch.allclose(table.weight[3], before[3] * 0.95)
    assert torch.equal(table.weight[:3], before[:3])


@pytest.mark.parametrize("scale", [1.0, 65536.0])
def test_a_scaled_loss_gives_the_same_step(scale: float) -> None:
    table, (ids, real, upper) = a_table(), a_batch(2)
    other = a_table()
    (table.sums(ids, real) * upper).sum().backward()
    (other.sums(ids, real) * upper * scale).sum().backward()
    table.update(0.1)
    other.update(0.1, scale=scale)
    assert torch.allclose(table.weight, other.weight, atol=1e-6)


def test_training_goes_on_from_a_state() -> None:
    whole, first = a_table(), a_table()
    steps = [a_batch(seed) for seed in (1, 2)]
    for table, some in ((whole, steps), (first, steps[:1])):
        for ids, real, upper in some:
            (table.sums(ids, real) * upper).sum().backward()
            table.update(0.2)
    again = a_table()
    again.load_state_dict(first.state_dict())
    again.load_state(first.state())
    ids, real, upper = steps[1]
    (again.sums(ids, real) * upper).sum().backward()
    again.update(0.2)
    assert torch.equal(again.weight, whole.weight)
