"""Clipping of gradients, beside the rule of AttentionXML's code in plain Python."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from longtail.nn.training.clipping import Clipper
from longtail.nn.training.options import TrainingOptions

NORMS = [0.3, 90.0, 0.1, 0.2, 0.1, 0.1, 3.0, 0.05, 0.01, 0.01, 0.01, 0.01, 0.5, 0.04, 2.0, 2.0, 2.0, 2.0]


class Plain:
    """Clips as an accelerator without mixed precision does."""

    def clip_grad_norm_(self, parameters: Any, most: float) -> Any:
        return nn.utils.clip_grad_norm_(parameters, most)


def clipped_to(options: TrainingOptions) -> list[float]:
    """The norms that are left of NORMS."""
    network, left = nn.Linear(2, 2), []
    clipper = Clipper(options, torch.device("cpu"))
    for norm in NORMS:
        for parameter in network.parameters():
            parameter.grad = torch.full_like(parameter, norm / 6**0.5)  # six numbers
        clipper.clip(Plain(), network)
        left.append(float(nn.utils.get_total_norm(parameter.grad for parameter in network.parameters())))
    return left


def test_gradients_are_cut_at_a_multiple_of_the_largest_recent_norm_as_in_attentionxmls_code() -> None:
    expected, queue = [], deque([float("inf")], maxlen=5)
    for norm in NORMS:
        largest = max(queue)
        expected.append(min(norm, 5 * largest))
        queue.append(min(norm, 2 * largest, 1.0))
    assert expected != NORMS
    assert clipped_to(TrainingOptions(clip_recent=5.0)) == pytest.approx(expected, rel=1e-4)


def test_gradients_are_cut_at_a_fixed_norm_or_not_at_all() -> None:
    assert clipped_to(TrainingOptions(clip_norm=0.25)) == pytest.approx([min(norm, 0.25) for norm in NORMS], rel=1e-4)
    assert clipped_to(TrainingOptions()) == pytest.approx(NORMS, rel=1e-4)


def test_a_step_whose_gradients_overflow_spoils_no_later_one() -> None:
    network, clipper = nn.Linear(2, 2), Clipper(TrainingOptions(clip_recent=5.0), torch.device("cpu"))
    for value in [0.1] * 5 + [float("nan"), 0.1]:
        for parameter in network.parameters():
            parameter.grad = torch.full_like(parameter, value)
        clipper.clip(Plain(), network)
    assert all(torch.allclose(parameter.grad, torch.tensor(0.1)) for parameter in network.parameters())


def test_a_run_that_is_stopped_remembers_recent_norms(tmp_path: Path) -> None:
    from longtail.run.run import Run
    from longtail.run.stages import FolderStages

    from ..small import a_network, train, weights

    def trained(n_parts: int) -> dict[str, Any]:
        """Train to the end in so many runs, each of which goes on from the checkpoint of the one before."""
        stages = FolderStages.open(tmp_path / str(n_parts), {}, resume=False)
        for part in range(1, n_parts + 1):
            network = a_network()
            more = {"n_steps": 12 * part // n_parts, "schedule": {"kind": "constant", "warmup": 0.0}}
            train(network, run=Run(stages=stages), clip_recent=0.02, averaging={"kind": "none"}, **more)
        return weights(network)

    whole, cut = trained(1), trained(2)
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
