"""Two nodes of a Ray cluster train the same model as this process, whatever of them dies on the way."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.data.write import write_dataset
from longtail.methods import create_method
from longtail.run.ray import RayEngine
from longtail.run.run import Run

pytestmark = pytest.mark.campaign
NODE: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 80 << 20, "include_dashboard": False}
OPTIONS: dict[str, Any] = {"tree": {"max_leaf": 3}, "n_seeds": 2}
PATIENCE_S = 300


@pytest.fixture
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args=NODE)
    started.add_node(**NODE)
    started.wait_for_nodes()
    yield started
    started.shutdown()


def node_and_sum(handle: Any, _: int) -> tuple[str, int]:
    """Return where a job runs and the sum of shared numbers; long enough for another node to get the next job."""
    import ray

    time.sleep(0.3)
    return ray.get_runtime_context().get_node_id(), int(handle.open()["x"].sum())


class LosingEngine:
    """Loses a node of the cluster in the middle of its fifth map, and gets another one."""

    def __init__(self, engine: RayEngine, cluster: Any) -> None:
        self.engine, self.cluster = engine, cluster
        self.n_threads, self.n_local_threads, self.n_maps = engine.n_threads, engine.n_local_threads, 0

    def map(self, function: Callable[[Any], Any], items: Any) -> Iterator[Any]:
        self.n_maps += 1
        for number, result in enumerate(self.engine.map(function, items)):
            if self.n_maps == 5 and number == 0:
                (lost,) = self.cluster.worker_nodes
                self.cluster.remove_node(lost, allow_graceful=False)
                self.cluster.add_node(**NODE)
            yield result

    def share(self, name: str, arrays: Any) -> Any:
        return self.engine.share(name, arrays)


def files_of(model: Any, folder: Path) -> dict[str, bytes]:
    model.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


@pytest.mark.parametrize("has_storage", [False, True])
def test_two_nodes_train_the_same_model(
    has_storage: bool, cluster: Any, tiny: Callable[..., Dataset], tmp_path: Path
) -> None:
    data = tiny()
    here = create_method("linear", OPTIONS).fit(data.train, threads=2)
    with RayEngine(cluster.address, storage=tmp_path / "shared" if has_storage else None) as engine:
        assert engine.n_threads == 2
        handle, seen = engine.share("numbers", {"x": np.arange(1000)}), set[tuple[str, int]]()
        _wait_for(lambda: len(seen.update(engine.map(partial(node_and_sum, handle), range(4))) or seen) == 2)
        assert {total for _, total in seen} == {499_500}
        there = create_method("linear", OPTIONS).fit(data.train, run=Run(engine))
        fetched = list(engine.folder.glob("*/*.safetensors"))  # both nodes have the temporary folder of this machine
        assert bool(fetched) is not has_storage
        folder = engine.folder
    assert not folder.exists()
    assert files_of(there, tmp_path / "there") == files_of(here, tmp_path / "here")


def test_a_node_that_is_lost_changes_nothing(cluster: Any, tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    data = tiny()
    here = create_method("linear", OPTIONS).fit(data.train, threads=2)
    with RayEngine(cluster.address) as engine:
        losing = LosingEngine(engine, cluster)
        there = create_method("linear", OPTIONS).fit(data.train, run=Run(losing))
        assert losing.n_maps > 5
    assert files_of(there, tmp_path / "there") == files_of(here, tmp_path / "here")


def test_a_killed_worker_and_a_killed_driver_end_in_the_same_model(cluster: Any, tmp_path: Path) -> None:
    psutil = pytest.importorskip("psutil")
    train = [sys.executable, "-m", "longtail", "train", "debtags-sample", "--set", "n_seeds=2", "--quiet", "-o"]
    subprocess.run([*train, str(tmp_path / "whole")], check=True)
    out, work = tmp_path / "killed", tmp_path / "killed.work"
    command = [*train, str(out), "--engine", f"ray://{cluster.address}", "--resume"]
    driver = subprocess.Popen(command)
    _wait_for(lambda: len(list(work.glob("*/manifest.json"))) >= 2)
    worker = next(one for one in psutil.Process().children(recursive=True) if one.name().startswith("ray::"))
    worker.send_signal(signal.SIGKILL)
    _wait_for(lambda: len(list(work.glob("*/manifest.json"))) >= 4)
    driver.kill()
    driver.wait()
    assert not out.exists()
    subprocess.run(command, check=True)
    models = [json.loads((tmp_path / name / "manifest.json").read_bytes())["files"] for name in ("whole", "killed")]
    assert models[0] == models[1]


def test_the_rows_of_a_comparison_use_the_cluster(
    cluster: Any, tiny: Callable[..., Dataset], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_dataset(tiny(), tmp_path / "data")
    compare = ["compare", str(tmp_path / "data"), "--methods", "linear,knn", "--quiet", "--json"]
    rows = {}
    for name, engine in {"here": "local", "there": f"ray://{cluster.address}"}.items():
        capfd.readouterr()
        assert main([*compare, "--out", str(tmp_path / name), "--engine", engine]) == 0
        figures = json.loads(capfd.readouterr().out)
        rows[name] = {one["name"]: one["results"]["metrics"] for one in figures["runs"]}
    assert rows["here"] == rows["there"]


def _wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
