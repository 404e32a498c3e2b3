from __future__ import annotations

import numpy as np
import pytest
import torch

from longtail.nn.noise import dropped, random_bits


def test_bits_are_even_and_differ_by_place_and_seed() -> None:
    like = torch.empty(300, 400)
    found = [random_bits(like, torch.tensor(seed)).numpy().view(np.uint32) for seed in (1, 2, 77)]
    for bits in found:
        for bit in range(32):
            assert ((bits >> bit) & 1).mean() == pytest.approx(0.5, abs=0.01)
        assert len(np.unique(bits)) > 0.999 * bits.size
    low = [bits & 0xFFFF for bits in found]
    assert abs(np.corrcoef(low[0].ravel(), low[1].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(low[0][:, :-1].ravel(), low[0][:, 1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(low[0][:-1].ravel(), low[0][1:].ravel())[0, 1]) < 0.02


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_dropout_leaves_the_mean_and_its_gradient_is_where_numbers_are(share: float) -> None:
    states = torch.ones(500, 300, requires_grad=True)
    made = dropped(states, share, torch.tensor(3))
    assert float((made == 0).float().mean()) == pytest.approx(share, abs=0.01)
    assert float(made.mean()) == pytest.approx(1, abs=0.01)
    made.sum().backward()
    assert torch.equal(states.grad, made.detach())
    again = dropped(states, share, torch.tensor(4))
    assert float(((made == 0) & (again == 0)).float().mean()) == pytest.approx(share**2, abs=0.01)


def test_no_share_drops_nothing() -> None:
    states = torch.randn(4, 5)
    assert dropped(states, 0.0, torch.tensor(0)) is states
