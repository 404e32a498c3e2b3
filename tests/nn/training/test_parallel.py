"""Two processes beside one: the same batches give the same weights."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from longtail.persist import Folder

from ..small import CASES, RESUMED, a_network, train, weights

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "small.py"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what two processes made of each case."""
    folder = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
        )
        for rank in range(2)
    ]
    told = [process.communicate(timeout=100)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0, 0], "\n".join(told)
    return folder


@pytest.mark.parametrize("case", [*CASES, RESUMED])
def test_two_processes_end_with_the_weights_of_one(case: str, two: Path) -> None:
    shape, training = CASES.get(case, ({}, {}))
    network = a_network(**shape)
    before = weights(network)
    train(network, **training)
    found = [np.load(two / f"{case}-{rank}.npz") for rank in range(2)]
    tolerance = 0.02 if "bfloat16" in case else 1e-5
    for name, value in weights(network).items():
        assert np.array_equal(found[0][name], found[1][name]), name
        assert np.allclose(found[0][name], value.float().numpy(), atol=tolerance, rtol=tolerance), name
    changed = [name for name, value in weights(network).items() if not torch.equal(value, before[name])]
    assert changed


def test_only_the_main_process_writes_checkpoints(two: Path) -> None:
    assert [path.name for path in (two / "work").iterdir() if path.is_dir()] == ["training"]
    assert Folder(two / "work" / "training", "stage").manifest["at"]["step"] == 10
