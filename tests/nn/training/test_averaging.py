from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from longtail.nn.training.averaging import Averager, AveragingOptions


def walked(n_steps: int, dtype: torch.dtype = torch.float32, **options: Any) -> tuple[Averager, list[Tensor], Tensor]:
    """An averager along a random walk of one weight; all values of the weight, and the weight itself."""
    draw = torch.Generator().manual_seed(1)
    weight = nn.Parameter(torch.randn(3, 2, generator=draw).to(dtype))
    averager, seen = Averager({"w": weight}, AveragingOptions(**options)), []
    for step in range(1, n_steps + 1):
        weight.data += torch.randn(3, 2, generator=draw).to(dtype)
        seen.append(weight.detach().clone())
        averager.after(step, n_steps)
    return averager, seen, weight


@given(st.integers(1, 40), st.integers(1, 7), st.floats(0, 0.95))
def test_swa_is_the_arithmetic_mean_of_the_snapshots(n_steps: int, every: int, start: float) -> None:
    averager, seen, _ = walked(n_steps, kind="swa", every=every, start=start)
    taken = [seen[step - 1] for step in range(1, n_steps + 1) if step % every == 0 and step >= start * n_steps]
    assert averager.n == len(taken)
    if taken:
        assert torch.allclose(averager.average["w"], torch.stack(taken).mean(0), atol=1e-5)


def test_ema_forgets_by_its_decay_once_enough_was_seen() -> None:
    averager, seen, _ = walked(400, kind="ema", every=2, decay=0.9)
    expected = seen[1]
    for number, value in enumerate(seen[3::2], 2):
        kept = min(0.9**2, number / (number + 9))
        expected = kept * expected + (1 - kept) * value
    assert torch.allclose(averager.average["w"], expected, atol=1e-5)
    assert min(0.9**2, 200 / 209) == 0.9**2  # the beginning is long over


def test_an_average_of_nothing_but_one_value_is_that_value() -> None:
    weight = nn.Parameter(torch.randn(4))
    averager = Averager({"w": weight}, AveragingOptions(kind="ema", every=1))
    for step in range(1, 30):
        averager.after(step, 30)
    assert torch.allclose(averager.average["w"], weight.detach(), atol=1e-6)


def test_before_the_first_snapshot_the_weights_are_used_as_they_are() -> None:
    averager, seen, weight = walked(9, kind="swa", every=10)
    assert averager.n == 0
    with averager.swapped_in():
        assert torch.equal(weight, seen[-1])


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_averages_are_swapped_in_and_the_weights_come_back(kind: torch.dtype) -> None:
    averager, seen, weight = walked(20, kind, every=1)
    assert averager.average["w"].dtype == torch.float32
    with pytest.raises(KeyError), averager.swapped_in():
        assert torch.equal(weight, averager.average["w"].to(kind))
        assert not torch.equal(weight, seen[-1])
        raise KeyError
    assert torch.equal(weight, seen[-1])
    averager.put_in()
    assert torch.equal(weight, averager.average["w"].to(kind))


def test_averages_remember_no_history_for_gradients() -> None:
    averager, _, weight = walked(20, every=1)
    assert weight.requires_grad
    assert not averager.average["w"].requires_grad
    assert averager.average["w"].grad_fn is None


def test_none_is_no_average() -> None:
    averager, _, _ = walked(20, kind="none", every=1)
    assert averager.n == 0
    assert averager.average == {}
