"""A model that a Ray cluster trains has the same bits as one of this process, also if workers die on the way."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from longtail.batch_prediction import predict_files
from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.data.write import write_dataset
from longtail.errors import ConfigError, DataError, LongtailError, MissingExtraError
from longtail.methods import create_method
from longtail.run.engines import engine_of
from longtail.run.local import LocalEngine
from longtail.run.ray import RayEngine
from longtail.run.run import Run

pytestmark = pytest.mark.slow
XBERT_WITH_CNN = {
    "recalls": [{"kind": "cnn", "vectors": {"width": 32}, "heights": [1, 2], "n_filters": 32, "slots": 1}],
    "vectors": [{"kinds": ["pifa"]}],
    "tree": {"max_leaf": 3},
    "matcher": {"training": {"epochs": 2, "batch_size": 8}},
}
OPTIONS: dict[str, Any] = {
    "linear": {"tree": {"max_leaf": 3}, "n_seeds": 2},
    "xbert": XBERT_WITH_CNN,
    "stack": {"members": ["linear", "knn"], "ranker": {"kind": "trees", "n_trees": 10, "min_leaf": 5}},
}


@pytest.fixture(scope="module")
def engine() -> Iterator[RayEngine]:
    pytest.importorskip("ray")
    with RayEngine(n_jobs=2, object_store_bytes=80 << 20) as started:
        yield started


# what runs on the cluster


def process_id(_: int) -> int:
    return os.getpid()


def die_once(marker: Path, number: int) -> int:
    """Return the square, but kill the process the first time."""
    if number == 3 and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(number: int) -> int:
    raise DataError(f"item {number} must be even")


def is_mapped(shared: Any, _: int) -> bool:
    array = shared.open()["x"]
    return not array.flags.owndata and array.tolist() == [0, 1, 2]


def ones(n: int) -> np.ndarray:
    return np.ones(n)


class KillingEngine:
    """Kills a worker of the cluster in the middle of every n-th map."""

    def __init__(self, engine: RayEngine, every: int) -> None:
        self.engine, self.every = engine, every
        self.n_threads, self.n_local_threads = engine.n_threads, engine.n_local_threads
        self.n_maps = self.n_killed = 0

    def map(self, function: Callable[[Any], Any], items: Any) -> Iterator[Any]:
        self.n_maps += 1
        victim = next(self.engine.map(process_id, [0])) if self.n_maps % self.every == 0 else None
        for number, result in enumerate(self.engine.map(function, items)):
            if number == 0 and victim is not None:
                os.kill(victim, signal.SIGKILL)
                self.n_killed += 1
            yield result

    def share(self, name: str, arrays: Any) -> Any:
        return self.engine.share(name, arrays)


def files_of(model: Any, folder: Path) -> dict[str, bytes]:
    model.save(folder)
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.safetensors"))}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_model_of_the_cluster_has_the_same_bits(
    name: str, engine: RayEngine, tiny: Callable[..., Dataset], tmp_path: Path
) -> None:
    if name == "xbert":
        pytest.importorskip("torch")
    if name == "stack":
        pytest.importorskip("lightgbm")
    data = tiny()
    here = create_method(name, OPTIONS[name]).fit(data.train, threads=2)
    there = create_method(name, OPTIONS[name]).fit(data.train, run=Run(engine))
    expected, found = files_of(here, tmp_path / "here"), files_of(there, tmp_path / "there")
    assert expected
    assert found == expected
    lists, of_cluster = here.top_k(data.test, 5, threads=2), there.top_k(data.test, 5, run=Run(engine))
    np.testing.assert_array_equal(of_cluster.labels, lists.labels)
    np.testing.assert_array_equal(of_cluster.scores, lists.scores)


def test_a_model_is_the_same_if_workers_are_killed_in_the_middle(
    engine: RayEngine, tiny: Callable[..., Dataset], tmp_path: Path
) -> None:
    data, killing = tiny(), KillingEngine(engine, every=8)
    here = create_method("linear", OPTIONS["linear"]).fit(data.train, threads=1)
    there = create_method("linear", OPTIONS["linear"]).fit(data.train, run=Run(killing))
    assert killing.n_killed >= 1
    assert files_of(there, tmp_path / "there") == files_of(here, tmp_path / "here")


def test_a_job_whose_worker_dies_is_done_again(engine: RayEngine, tmp_path: Path) -> None:
    found = list(engine.map(partial(die_once, tmp_path / "died"), range(6)))
    assert found == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "died").exists()


def test_jobs_run_in_processes_of_their_own(engine: RayEngine) -> None:
    assert os.getpid() not in set(engine.map(process_id, range(4)))


def test_what_a_job_raises_is_raised_here(engine: RayEngine) -> None:
    with pytest.raises(DataError, match=r"^item 0 must be even$"):
        list(engine.map(refuse, range(3)))


def test_a_job_that_always_dies_is_reported_by_name(engine: RayEngine) -> None:
    with RayEngine(retries=0) as stubborn, pytest.raises(LongtailError, match=r"was lost \(die\).*`resume` goes on"):
        list(stubborn.map(die, [0]))
    assert list(engine.map(process_id, [0]))  # the cluster, which the other engine did not start, goes on


def test_a_second_cluster_is_refused(engine: RayEngine) -> None:
    with pytest.raises(ConfigError, match=r"uses the Ray cluster at \S+ already; .*, got 10.0.0.1:6379"):
        RayEngine("10.0.0.1:6379")


def test_results_may_be_written_into(engine: RayEngine) -> None:
    (found,) = engine.map(ones, [100_000])
    found += 1
    assert found.sum() == 200_000


def test_shared_arrays_are_mapped_files_that_end_with_the_arrays(engine: RayEngine) -> None:
    arrays = {"x": np.arange(3)}
    handle = engine.share("numbers", arrays)
    assert list(engine.map(partial(is_mapped, handle), [0])) == [True]
    path = handle.stored.path
    assert path.exists()
    del arrays, handle
    assert not path.exists()


def test_files_in_the_storage_are_read_where_they_are(engine: RayEngine, tmp_path: Path) -> None:
    with RayEngine(storage=tmp_path) as stored:
        handle = stored.share("numbers", {"x": np.arange(3)})
        assert handle.node is None
        assert handle.stored.path.is_relative_to(tmp_path)
        assert list(stored.map(partial(is_mapped, handle), [0])) == [True]
    assert not list(tmp_path.iterdir())
    assert engine.share("others", {"x": np.arange(3)}).node is not None


def test_folders_of_dead_processes_are_removed(engine: RayEngine, tmp_path: Path) -> None:
    with RayEngine(storage=tmp_path) as living:
        (folder,) = tmp_path.glob("longtail-*")
        left = folder.with_name(f"{folder.name}-dead")
        left.mkdir()
        (left / "0-features.safetensors").touch()
        with RayEngine(storage=tmp_path):
            assert not left.exists()
            assert folder.exists()
        assert living.share("numbers", {"x": np.arange(3)}).stored.path.exists()


def test_the_command_line_predicts_the_same(
    engine: RayEngine, tiny: Callable[..., Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(tiny(), tmp_path / "data")
    assert main(["train", str(tmp_path / "data"), "-o", str(tmp_path / "m"), "--engine", "ray", "--quiet"]) == 0
    texts = "\n".join(tiny().test.texts["text"].to_pylist())
    (tmp_path / "texts.txt").write_text(texts, encoding="utf-8")
    answers = []
    for name in ("local", "ray"):
        capsys.readouterr()
        code = main(["predict", str(tmp_path / "m"), str(tmp_path / "texts.txt"), "--engine", name, "--quiet"])
        assert code == 0
        answers.append(capsys.readouterr().out)
    assert answers[0]
    assert answers[0] == answers[1]


def test_a_folder_of_texts_is_tagged_on_the_cluster(
    engine: RayEngine, tiny: Callable[..., Dataset], tmp_path: Path
) -> None:
    data, texts = tiny(), tmp_path / "in.parquet"
    create_method("linear").fit(data.train, threads=1).save(tmp_path / "model")
    texts.mkdir()
    for number in range(4):
        pq.write_table(data.test.texts.slice(15 * number, 15), texts / f"{number}.parquet")
    for name, run in {"there": Run(engine), "here": Run(LocalEngine(1))}.items():
        done = predict_files(tmp_path / "model", texts, tmp_path / name, run=run)
        assert (done.n_parts, done.n_texts) == (4, 60)
    for number in range(4):
        part = f"part-{number:05}.parquet"
        assert (tmp_path / "there" / part).read_bytes() == (tmp_path / "here" / part).read_bytes()


# what is refused


def test_a_missing_library_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[ray\]'"):
        RayEngine()


def test_numbers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match="threads must be a whole number of at least 1, got 0"):
        RayEngine(n_jobs=0)
    with pytest.raises(ConfigError, match="retries must be at least 0, got -1"):
        RayEngine(retries=-1)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--engine", "spark"], "--engine must be local, ray or ray://HOST:PORT, got 'spark'"),
        (["--engine", "local://there"], "--engine must be local, ray or ray://HOST:PORT, got 'local://there'"),
        (["--storage", "here"], "--storage is for --engine ray; leave it out"),
    ],
)
def test_wrong_engines_are_one_line(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "debtags-sample", "-o", "never", *flags]) == 2
    assert capsys.readouterr().err.endswith(f"longtail: {message}\n")


def test_an_engine_is_handed_to_another_process_as_plain_data(engine: RayEngine, tmp_path: Path) -> None:
    assert engine_of(LocalEngine(3).plain()).n_threads == 3
    with RayEngine(n_jobs=1, storage=tmp_path) as one:
        plain = json.loads(json.dumps(one.plain()))
        again = engine_of(plain)
        assert again.plain() == plain
        assert list(again.map(process_id, [0]))
        again.close()


def test_threads_of_this_process_are_told_apart_from_jobs_elsewhere() -> None:
    assert LocalEngine(3).n_local_threads == 3
