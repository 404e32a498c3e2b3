from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail.errors import ConfigError
from longtail.kernels.rows import Rows
from longtail.labels.index import LabelIndex, index_of_groups
from longtail.linear.training import STAGE_WORK, Examples, SolverOptions, fit_layer
from longtail.linear.tree import BeamOptions, LinearTree, RankerOptions, fit_tree
from longtail.run.local import LocalEngine
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.types import LabelMatrix

ONE = Run(LocalEngine(1))
N_LABELS = 37
INDEX = index_of_groups(
    [[np.arange(20), np.arange(20, 37)], [np.arange(4), np.arange(4, 20), np.arange(20, 37)]], N_LABELS
)


def problem(n_texts: int = 40, seed: int = 0) -> tuple[Rows, LabelMatrix]:
    rng = np.random.default_rng(seed)
    rows = [rng.choice(N_LABELS, rng.integers(1, 4), replace=False) for _ in range(n_texts)]
    return Rows.of(sp.random(n_texts, 30, 0.3, "csr", np.float32, random_state=seed)), LabelMatrix.from_lists(
        rows, N_LABELS
    )


def train(
    index: LabelIndex = INDEX,
    run: Run = ONE,
    stage_work: int = STAGE_WORK,
    **ranker: Any,
) -> LinearTree:
    features, labels = problem()
    return fit_tree(
        features,
        labels,
        index,
        matcher=SolverOptions(),
        ranker=RankerOptions(n_recalled=2, **ranker),
        search=BeamOptions(beam=2),
        seed=1,
        run=run,
        stage_work=stage_work,
    )


def assert_same_bits(found: LinearTree, expected: LinearTree) -> None:
    for mine, theirs in zip(found.layers, expected.layers, strict=True):
        for name, array in theirs.arrays().items():
            np.testing.assert_array_equal(getattr(mine, name), array, name)
            assert getattr(mine, name).dtype == array.dtype


# who trains a cluster


label_lists = st.lists(st.sets(st.integers(0, N_LABELS - 1), max_size=4), min_size=1, max_size=6)


@settings(max_examples=30)
@given(label_lists, st.data())
def test_a_cluster_is_trained_by_texts_of_its_labels_and_by_those_recalled(
    rows: list[set[int]], data: st.DataObject
) -> None:
    recalled = np.array([data.draw(st.permutations([-1, 0, 1, 2]))[:2] for _ in rows], np.int32)
    level = INDEX.levels()[2]
    labels = LabelMatrix.from_lists(rows, N_LABELS)
    for given_recalled in (None, recalled):
        examples = Examples.of(labels, level, recalled=given_recalled)
        for cluster in range(3):
            own = {i for i, row in enumerate(rows) if any(INDEX.parents[2][label] == cluster for label in row)}
            if given_recalled is not None:
                own |= {i for i in range(len(rows)) if cluster in recalled[i]}
            assert examples.of_cluster(cluster).tolist() == sorted(own)


def test_everyone_trains_every_cluster_when_asked_to() -> None:
    examples = Examples.of(problem()[1], INDEX.levels()[2], everyone=True)
    for cluster in range(3):
        assert examples.of_cluster(cluster).tolist() == list(range(40))
    assert len(examples.texts) == 40  # not once a cluster: there may be very many


def test_counts_above_127_are_cut() -> None:
    labels = LabelMatrix.from_lists([[0], [1]], N_LABELS)
    assert Examples.of(labels, INDEX.levels()[2], counts=np.array([3, 1000])).counts.tolist() == [3, 127]


# what is the same


@pytest.mark.parametrize("negatives", ["cluster", "matcher", "all"])
def test_threads_give_the_same_bits(negatives: str) -> None:
    runs = [train(run=Run(LocalEngine(n)), negatives=negatives) for n in (1, 2, 3)]
    assert_same_bits(runs[1], runs[0])
    assert_same_bits(runs[2], runs[0])


def test_wide_clusters_are_the_same_however_they_are_cut() -> None:
    features, _ = problem()
    labels = LabelMatrix.from_lists([[i, 100 + i, 299 - i] for i in range(40)], 300)
    level = LabelIndex.flat(300).levels()[0]
    examples = Examples.of(labels, level, everyone=True)
    layers = [fit_layer(features, level, examples, SolverOptions(), run=Run(LocalEngine(n))) for n in (1, 2, 5)]
    for layer in layers[1:]:
        for name, array in layers[0].arrays().items():
            np.testing.assert_array_equal(getattr(layer, name), array, name)


def test_stages_do_not_change_the_result() -> None:
    assert_same_bits(train(stage_work=1), train())


def test_a_cluster_that_is_too_wide_is_refused() -> None:
    level = LabelIndex.flat(65_537).levels()[0]
    labels = LabelMatrix.from_lists([[0]], 65_537)
    with pytest.raises(ConfigError, match=r"65,536 children at most, got 65,537; use tree\.n_levels"):
        fit_layer(problem(1)[0], level, Examples.of(labels, level, everyone=True), SolverOptions(), run=ONE)


def test_frequent_labels_get_smaller_costs_with_cost_decay() -> None:
    features, labels = problem()
    level = LabelIndex.flat(N_LABELS).levels()[0]
    frequency = np.maximum(labels.texts_per_label(), 1)
    strict: dict[str, Any] = {"tolerance": 1e-4, "max_passes": 500, "threshold": 0.0}
    everyone = Examples.of(labels, level, everyone=True)
    decayed = fit_layer(features, level, everyone, SolverOptions(cost_decay=1.0, **strict), run=ONE)
    for label in (0, 7):
        alone = SolverOptions(cost_positive=1 / frequency[label], cost_negative=1 / frequency[label], **strict)
        assert fit_layer(features, level, everyone, alone, run=ONE).bias[label] == pytest.approx(
            decayed.bias[label], abs=1e-3
        )


# stages


class Interrupted(Exception):
    pass


class Breaking:
    """Progress that breaks off the run at its n-th word."""

    def __init__(self, at: int, end: Callable[[], None]) -> None:
        self.left, self.end = at, end

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Callable[[int], None]]:
        self.advance(0)
        yield self.advance

    def advance(self, amount: int) -> None:
        self.left -= 1
        if self.left < 0:
            self.end()


def give_up() -> None:
    raise Interrupted


def count_words() -> int:
    counter = Breaking(10**9, give_up)
    train(run=replace(ONE, progress=counter), stage_work=1)
    return 10**9 - counter.left


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_breaks_off_anywhere_goes_on_to_the_same_model(threads: int, tmp_path: Path) -> None:
    expected, n_words = train(), count_words()
    assert n_words > 8
    for at in range(n_words):
        work = tmp_path / f"{at}.work"
        engine = LocalEngine(threads)
        with pytest.raises(Interrupted):
            train(run=Run(engine, Breaking(at, give_up), FolderStages.open(work, "key", False)), stage_work=1)
        assert not list(work.glob(".*"))
        assert_same_bits(train(run=Run(engine, stages=FolderStages.open(work, "key", True)), stage_work=1), expected)


class Idle(LocalEngine):
    """An engine that refuses to work."""

    def map(self, function: Any, items: Any) -> Any:
        raise AssertionError("something is trained")


def test_finished_stages_are_not_trained_again(tmp_path: Path) -> None:
    expected = train(run=replace(ONE, stages=FolderStages.open(tmp_path / "w", "key", False)), stage_work=1)
    idle = Run(Idle(1), stages=FolderStages.open(tmp_path / "w", "key", True))
    assert_same_bits(train(run=idle, stage_work=1), expected)
    with pytest.raises(AssertionError, match="something is trained"):
        train(run=Run(Idle(1)))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_goes_on_to_the_same_model(tmp_path: Path) -> None:
    work = tmp_path / "w"
    child = subprocess.run([sys.executable, __file__, str(work)], check=False, capture_output=True)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert (work / "cluster-weights-1-0").is_dir()
    assert not (work / "label-weights-2").exists()
    assert_same_bits(train(run=replace(ONE, stages=FolderStages.open(work, "key", True)), stage_work=1), train())


if __name__ == "__main__":
    n_words = count_words()
    kill = Breaking(n_words - 3, lambda: os.kill(os.getpid(), signal.SIGKILL))
    train(run=replace(ONE, progress=kill, stages=FolderStages.open(sys.argv[1], "key", False)), stage_work=1)
