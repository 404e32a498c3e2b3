"""Engines that run jobs elsewhere give the same bits as threads here, and are handed nothing but small specs."""

from __future__ import annotations

import multiprocessing
import pickle
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.linear.ranker import RankerOptions
from longtail.linear.training import Examples, ShardSpec, SolverOptions, fit_layer, train_shard
from longtail.linear.tree import BeamOptions, LinearTree, fit_tree
from longtail.mapped_arrays import map_arrays, store_arrays
from longtail.methods import create_method
from longtail.neighbours import Blocks, NeighbourIndex
from longtail.neighbours.points import WordPointOptions, fit_points
from longtail.run.engine import ArrayStore, Engine, SharedArrays, StoredArrays
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.types import LabelMatrix

pytestmark = pytest.mark.slow
SMALL_BYTES = 8_000
N_LABELS = 37
INDEX = index_of_groups(
    [[np.arange(20), np.arange(20, 37)], [np.arange(4), np.arange(4, 20), np.arange(20, 37)]], N_LABELS
)


class SpawnEngine:
    """Two processes that share nothing with this one but files; remembers how large the pickled jobs were."""

    n_threads = n_local_threads = 2

    def __init__(self, folder: Path) -> None:
        self.store = ArrayStore(folder)
        self.pool = ProcessPoolExecutor(self.n_threads, multiprocessing.get_context("spawn"))
        self.jobs: Counter[str] = Counter()
        self.largest = 0

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        name = (function.func if isinstance(function, partial) else function).__name__
        waiting: deque[Future[Any]] = deque()
        for item in items:
            self.jobs[name] += 1
            self.largest = max(self.largest, len(pickle.dumps((function, item))))
            waiting.append(self.pool.submit(function, item))
            if len(waiting) > 2 * self.n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def share(self, name: str, arrays: Any) -> SharedArrays:
        return self.store.share(name, arrays)


@pytest.fixture(scope="module")
def spawn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SpawnEngine]:
    engine = SpawnEngine(tmp_path_factory.mktemp("shared"))
    yield engine
    engine.pool.shutdown(cancel_futures=True)


@pytest.fixture
def engine(spawn: SpawnEngine) -> SpawnEngine:
    spawn.jobs.clear()
    spawn.largest = 0
    return spawn


def problem(n_texts: int = 60, n_columns: int = 30, seed: int = 0) -> tuple[Rows, LabelMatrix]:
    rng = np.random.default_rng(seed)
    rows = [rng.choice(N_LABELS, rng.integers(1, 4), replace=False) for _ in range(n_texts)]
    features = sp.random(n_texts, n_columns, 0.3, "csr", np.float32, random_state=seed)
    return Rows.of(features), LabelMatrix.from_lists(rows, N_LABELS)


def grown(engine: Engine, **run: Any) -> LinearTree:
    features, labels = problem()
    return fit_tree(
        features,
        labels,
        INDEX,
        matcher=SolverOptions(),
        ranker=RankerOptions(n_recalled=2),
        search=BeamOptions(beam=2),
        seed=1,
        run=Run(engine, **run),
        stage_work=20_000,
    )


def assert_same_bits(found: LinearTree, expected: LinearTree) -> None:
    for mine, theirs in zip(found.layers, expected.layers, strict=True):
        for name, array in theirs.arrays().items():
            np.testing.assert_array_equal(getattr(mine, name), array, name)
            assert getattr(mine, name).dtype == array.dtype


def test_a_tree_trained_in_other_processes_has_the_same_bits(engine: SpawnEngine) -> None:
    tree, expected = grown(engine), grown(LocalEngine(2))
    assert_same_bits(tree, expected)
    assert engine.jobs["train_shard"] > 5
    texts = problem(seed=1)[0]
    found = tree.predict(texts, 5, BeamOptions(beam=2), Run(engine), most=7)
    here = expected.predict(texts, 5, BeamOptions(beam=2), Run(LocalEngine(1)))
    np.testing.assert_array_equal(found.labels, here.labels)
    np.testing.assert_array_equal(found.scores, here.scores)
    assert engine.jobs["_predict_span"] == 9


def test_a_wide_cluster_that_is_cut_into_shards_has_the_same_bits(engine: SpawnEngine) -> None:
    features, _ = problem()
    labels = LabelMatrix.from_lists([[i, 100 + i, 299 - i] for i in range(60)], 300)
    level = LabelIndex.flat(300).levels()[0]
    examples = Examples.of(labels, level, everyone=True)
    found, expected = (
        fit_layer(features, level, examples, SolverOptions(), run=Run(one)) for one in (engine, LocalEngine(1))
    )
    assert_same_bits(LinearTree((found,)), LinearTree((expected,)))
    assert engine.jobs["train_shard"] > 10


def test_a_whole_linear_model_is_the_same(engine: SpawnEngine, tiny: Callable[..., Dataset], tmp_path: Path) -> None:
    data = tiny()
    options = {"tree": {"max_leaf": 3}, "n_seeds": 2}
    here = create_method("linear", options).fit(data.train, threads=2)
    there = create_method("linear", options).fit(data.train, run=Run(engine))
    expected, found = here.top_k(data.test, 5, threads=1), there.top_k(data.test, 5, run=Run(engine))
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)
    here.save(tmp_path / "here")
    there.save(tmp_path / "there")
    files = sorted(path.name for path in (tmp_path / "here").glob("*.safetensors"))
    assert files
    for file in files:
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes(), file
    for job in ("count_span", "weigh_span", "transform_span", "sum_texts", "split_groups", "train_shard"):
        assert engine.jobs[job], job
    assert engine.largest < SMALL_BYTES


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_neighbours_found_in_other_processes_are_the_same(engine: SpawnEngine, kind: str) -> None:
    rng = np.random.default_rng(0)
    dense = (rng.integers(-1, 3, (60, 6)) * (rng.random((60, 6)) < 0.5)).astype(np.float32)
    points: Any = dense if kind == "dense" else Rows.of(sp.csr_matrix(dense))
    hashes = np.repeat(np.arange(30, dtype=np.uint64), 2)
    index = NeighbourIndex.build(points, hashes)
    found, expected = (
        index.nearest(points, 4, hashes, run=Run(one), blocks=Blocks(7, 11)) for one in (engine, LocalEngine(1))
    )
    np.testing.assert_array_equal(found.texts, expected.texts)
    np.testing.assert_array_equal(found.cosines, expected.cosines)
    assert engine.jobs["search_block" if kind == "dense" else "search_span"] == 9


def test_word_points_made_in_other_processes_are_the_same(engine: SpawnEngine, tiny: Callable[..., Dataset]) -> None:
    split = tiny().train
    found, expected = (fit_points(split, WordPointOptions(), 0, Run(one))[1] for one in (engine, LocalEngine(1)))
    np.testing.assert_array_equal(found, expected)
    assert engine.jobs["mean_vectors"]


def test_a_killed_run_goes_on_with_another_engine(engine: SpawnEngine, tmp_path: Path) -> None:
    expected = grown(LocalEngine(1), stages=FolderStages.open(tmp_path / "w", "key", False))
    assert len(list((tmp_path / "w").glob("label-weights-*"))) > 1
    for stage in (tmp_path / "w").glob("label-weights-[1-9]*"):
        (stage / "manifest.json").unlink()
    assert_same_bits(grown(engine, stages=FolderStages.open(tmp_path / "w", "key", True)), expected)
    assert engine.jobs["train_shard"]


@pytest.mark.parametrize("n_texts", [20, 2000])
def test_the_spec_of_a_shard_is_small_whatever_the_size_of_the_data(n_texts: int, tmp_path: Path) -> None:
    kept: list[ShardSpec] = []

    class Watched(LocalEngine):
        def map(self, function: Any, items: Any) -> Any:
            items = list(items)
            kept.extend(items if function is train_shard else [])
            return super().map(function, items)

        def share(self, name: str, arrays: Any) -> Any:
            return ArrayStore(tmp_path).share(name, arrays)

    features, labels = problem(n_texts, n_columns=n_texts)
    level = LabelIndex.flat(N_LABELS).levels()[0]
    fit_layer(features, level, Examples.of(labels, level, everyone=True), SolverOptions(), run=Run(Watched(1)))
    assert kept
    assert max(len(pickle.dumps(spec)) for spec in kept) < 3_000


# shared arrays


def test_the_local_engine_hands_out_the_arrays_themselves() -> None:
    arrays = {"x": np.arange(3)}
    assert LocalEngine(1).share("x", arrays).open()["x"] is arrays["x"]


def test_arrays_are_stored_once_and_as_long_as_they_exist(tmp_path: Path) -> None:
    store, arrays = ArrayStore(tmp_path), {"x": np.arange(5), "empty": np.empty((0, 2), np.float32)}
    handle = store.share("numbers", arrays)
    assert store.share("again", arrays) == handle
    assert len(list(tmp_path.iterdir())) == 1
    assert handle != store.share("others", {"x": np.arange(5)})
    there = pickle.loads(pickle.dumps(handle))
    assert there.kept is None
    opened = there.open()
    assert {name: array.tolist() for name, array in opened.items()} == {"x": [0, 1, 2, 3, 4], "empty": []}
    assert opened["empty"].shape == (0, 2)
    del arrays
    assert handle.path.exists()  # the handle keeps them
    path = handle.path
    del handle
    assert not path.exists()
    assert not list(tmp_path.iterdir())


def test_arrays_that_are_mapped_from_a_file_are_not_written_again(tmp_path: Path) -> None:
    file, store = tmp_path / "a.safetensors", ArrayStore(tmp_path / "store")
    store.folder.mkdir()
    store_arrays(file, {"x": np.arange(10), "y": np.ones((2, 3), np.float32)})
    mapped = map_arrays(file)
    assert store.share("all", mapped) == StoredArrays(file)
    assert store.share("one", {"x": mapped["x"]}) == StoredArrays(file)
    for other in ({"z": mapped["x"]}, {"x": mapped["x"][2:]}, {"x": mapped["x"], "y": np.ones((2, 3), np.float32)}):
        handle = store.share("other", other)
        assert handle.path.parent == store.folder
        assert {name: array.tolist() for name, array in handle.open().items()} == {
            name: array.tolist() for name, array in other.items()
        }


def test_run_refuses_threads_beside_an_engine(tiny: Callable[..., Dataset]) -> None:
    with pytest.raises(ConfigError, match="threads and progress must be left out beside run"):
        create_method("linear").fit(tiny().train, run=replace(Run()), threads=1)
