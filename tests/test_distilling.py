"""A student learns from a stack, stays as fast as it is alone, and the report on it is honest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import longtail
from longtail.cli.main import main
from longtail.data.dataset import Dataset
from longtail.data.write import write_dataset
from longtail.distilling import distil, distil_and_save
from longtail.errors import ConfigError, DataError
from longtail.methods.stack import Stack
from longtail.stacking.folds import folds_of

pytestmark = pytest.mark.slow
RANKER = {"kind": "logistic"}


@pytest.fixture(scope="module")
def data() -> Dataset:
    sample = longtail.load_dataset("debtags-sample")
    return Dataset("some", {"train": sample.train[:2000], "test": sample.test[:200]}, sample.vocabulary)


@pytest.fixture(scope="module")
def stack(data: Dataset) -> Stack:
    pytest.importorskip("lightgbm")
    return Stack(members=["linear/fast", "knn"], n_ranked_folds=5, ranker={"n_trees": 60}).fit(data.train, threads=1)


def test_a_student_is_told_what_the_stack_says_of_texts_that_both_have_not_seen(stack: Stack, data: Dataset) -> None:
    distilled = distil(stack, data.train, "linear/fast")
    assert distilled.n_held_out == 2000
    assert set(distilled.ndcg) == {"stack", "student", "alone"}
    assert distilled.ndcg["stack"] == stack.held_out_.figures.stack
    assert distilled.ndcg["student"] > distilled.ndcg["alone"]
    assert set(distilled.ms_per_text) == {"stack", "student"}
    gain = distilled.ndcg["stack"] - distilled.ndcg["alone"]
    assert distilled.kept == pytest.approx((distilled.ndcg["student"] - distilled.ndcg["alone"]) / gain)
    scores = distilled.model.top_k(data.test, 5).scores
    assert ((scores >= 0) & (scores <= 1)).all()
    assert distilled.model.predict(data.test, 5, threshold="auto")


def test_a_student_is_saved_with_what_it_learned(stack: Stack, data: Dataset, tmp_path: Path) -> None:
    stack.save(tmp_path / "stack")
    opened = longtail.load_model(tmp_path / "stack")
    first = distil_and_save(opened, data.train, tmp_path / "one", "linear/fast")
    model = longtail.load_model(tmp_path / "one")
    again, ours = model.top_k(data.test, 5), first.model.top_k(data.test, 5)
    assert np.array_equal(again.labels, ours.labels)
    assert again.scores.tobytes() == ours.scores.tobytes()
    assert model.facts_["distilled"]["nDCG@5"] == first.ndcg
    assert not (tmp_path / "one.work").exists()


def test_fewer_folds_are_fewer_texts(stack: Stack, data: Dataset) -> None:
    distilled = distil(stack, data.train, "linear/fast", n_folds=1)
    assert distilled.n_held_out == np.count_nonzero(folds_of(data.train, 5, 0) == 0)


def test_what_is_no_stack_and_other_texts_are_refused(stack: Stack, data: Dataset) -> None:
    linear = longtail.Linear("linear/fast").fit(data.train)
    with pytest.raises(ConfigError, match=r"distil needs a stack, or auto that kept one, .* got linear"):
        distil(linear, data.train)
    with pytest.raises(DataError, match="the very texts that the stack was trained on"):
        distil(stack, data.train[:800])


def test_the_command_says_what_is_kept(
    stack: Stack, data: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_dataset(data, tmp_path / "data")
    model = Stack(members=["linear/fast", "knn"], n_ranked_folds=2, ranker=RANKER)
    model.fit(longtail.load_dataset(tmp_path / "data").train).save(tmp_path / "stack")
    arguments = [str(tmp_path / "stack"), str(tmp_path / "data"), "--to", "linear/fast", "--out", str(tmp_path / "m")]
    assert main(["distil", *arguments]) == 0
    shown = capsys.readouterr().out
    assert "linear/fast alone" in shown
    assert "the stack" in shown
    assert main(["distil", *arguments, "--json", "--folds", "1"]) == 0
    assert '"kept"' in capsys.readouterr().out
