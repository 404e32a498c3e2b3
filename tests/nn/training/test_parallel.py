"""Two and four processes beside one: the same batches give the same weights."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from longtail.persist import Folder

from ..small import (
    CASES,
    GONE_ON_WITH,
    PREDICTING,
    RESUMED,
    STOPPED,
    a_network,
    begin,
    go_on,
    lists_in_training,
    train,
    weights,
)

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[1] / "small.py"


def run_processes(n: int, folder: Path) -> Path:
    """Let `n` processes make everything; return the folder, which holds what another number of them has begun."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {**os.environ, "WORLD_SIZE": str(n), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder)],
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stderr=subprocess.PIPE,
        )
        for rank in range(n)
    ]
    told = [process.communicate(timeout=300)[1].decode() for process in running]
    assert [process.returncode for process in running] == [0] * n, "\n".join(told)
    return folder


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what two processes made; one process began what they go on with."""
    folder = tmp_path_factory.mktemp("two")
    begin(folder / "begun")
    return run_processes(2, folder)


@pytest.fixture(scope="module", params=[2, pytest.param(4, marks=pytest.mark.campaign)])
def several(request: pytest.FixtureRequest, two: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Path]:
    """The number of processes, and a folder with what they made; two processes began what four go on with."""
    if request.param == 2:
        return 2, two
    folder = tmp_path_factory.mktemp("four")
    shutil.copytree(two / "stopped", folder / "begun")
    return 4, run_processes(4, folder)


@pytest.mark.parametrize("case", [*CASES, RESUMED, GONE_ON_WITH])
def test_several_processes_end_with_the_weights_of_one(case: str, several: tuple[int, Path]) -> None:
    n_ranks, folder = several
    shape, training = CASES.get(case, ({}, STOPPED))
    network = a_network(**shape)
    before = weights(network)
    train(network, **training)
    found = [np.load(folder / f"{case}-{rank}.npz") for rank in range(n_ranks)]
    tolerance = 0.02 if "bfloat16" in case else 1e-5
    for name, value in weights(network).items():
        for other in found[1:]:
            assert np.array_equal(found[0][name], other[name]), name
        assert np.allclose(found[0][name], value.float().numpy(), atol=tolerance, rtol=tolerance), name
    changed = [name for name, value in weights(network).items() if not torch.equal(value, before[name])]
    assert changed


@pytest.mark.parametrize("case", PREDICTING)
def test_the_best_labels_of_all_processes_are_those_of_one(case: str, several: tuple[int, Path]) -> None:
    n_ranks, folder = several
    expected = lists_in_training(a_network(**PREDICTING[case]))
    for rank in range(n_ranks):
        found = np.load(folder / f"{case}-lists-{rank}.npz")
        assert np.array_equal(found["labels"], expected["labels"])
        assert np.allclose(found["scores"], expected["scores"], atol=1e-5)


def test_each_process_keeps_its_own_labels_in_checkpoints(several: tuple[int, Path]) -> None:
    n_ranks, folder = several
    assert Folder(folder / "work" / "training", "stage").manifest["at"]["step"] == 10
    parts = [Folder(folder / "work" / f"training-10-{rank}", "stage") for rank in range(n_ranks)]
    rows = [len(part.arrays("weights")["head.table.weight"]) for part in parts]
    assert sum(rows) == 11
    assert max(rows) - min(rows) <= 1
    assert {path.name for path in (folder / "work").iterdir() if path.is_dir()} == {
        "training", *(part.path.name for part in parts)
    }  # fmt: skip


def test_one_process_goes_on_with_what_several_began(several: tuple[int, Path], tmp_path: Path) -> None:
    shutil.copytree(several[1] / "stopped", tmp_path / "stopped")
    network, _ = go_on(tmp_path / "stopped")
    expected = a_network()
    train(expected, **STOPPED)
    for name, value in weights(expected).items():
        assert torch.allclose(weights(network)[name], value, atol=1e-5), name
    assert [path.name for path in (tmp_path / "stopped").iterdir() if path.is_dir()] == ["training"]
