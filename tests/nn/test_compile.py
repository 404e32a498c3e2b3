"""Compiled layers and updates: the same numbers, or the plain code where nothing can be compiled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from longtail.nn.network import Network
from longtail.nn.training.devices import COMPILER_WARNINGS

from .small import WIDTH, Mean, a_head, train, weights

pytestmark = pytest.mark.slow


class Layered(Mean):
    """With layers, as transformers have them."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = nn.ModuleList([nn.Linear(WIDTH, WIDTH)])

    def layers(self) -> nn.ModuleList:
        return self.stack

    def forward(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        return self.stack[0](super().forward(ids, mask))


def a_network() -> Network:
    torch.manual_seed(0)
    return Network(Layered(), a_head("dense"))


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is found compiled, and later tests find nothing of this."""
    from torch._inductor import config

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    torch._dynamo.reset()
    with config.patch({"cpp.vec_isa_ok": False}):  # which vectors a machine has takes ten seconds to find out
        yield
    torch._dynamo.reset()


def close(one: Network, two: Network) -> bool:
    mine, other = weights(one), weights(two)
    return all(torch.allclose(mine[name], other[name], atol=1e-5) for name in mine)


def test_compiled_layers_and_updates_give_the_same_weights() -> None:
    plain, compiled = a_network(), a_network()
    train(plain, n_steps=1, compile="off")
    torch._dynamo.utils.counters.clear()
    train(compiled, n_steps=1, compile="on")
    assert close(plain, compiled)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 3  # a layer, a table's weights and its bias


def test_where_nothing_can_be_compiled_the_plain_code_runs_and_that_is_said_once(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._inductor import config

    monkeypatch.setattr(COMPILER_WARNINGS, "warned", False)
    plain, compiled = a_network(), a_network()
    train(plain, n_steps=3, compile="off")
    with caplog.at_level(logging.WARNING), config.patch({"cpp.cxx": ("no-such-compiler",)}):
        train(compiled, n_steps=3, compile="on")
    assert close(plain, compiled)
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 1
    assert told[0].startswith("some code cannot be compiled and runs slower (")
    assert "compiler" in told[0]
    assert "Traceback" not in capfd.readouterr().err
