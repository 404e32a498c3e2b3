"""One encoder trained on coarser and then on finer label clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from longtail.data.dataset import Dataset
from longtail.labels.index import LabelIndex
from longtail.labels.recall import Recalled
from longtail.linear.training import SolverOptions
from longtail.nn.encoders.bag import BagOptions
from longtail.nn.heads.base import NoHead
from longtail.nn.resolutions import FineTuningOptions, Resolutions, linear_start
from longtail.nn.tagger import NetworkPlan, Tagger
from longtail.nn.training.options import TrainingOptions
from longtail.run.local import LocalEngine
from longtail.run.progress import Advance
from longtail.run.run import Run
from longtail.run.stages import FolderStages
from longtail.text.readings import TextReadings

N_LABELS = 12
ONE = Run(LocalEngine(1))
INDEX = LabelIndex((np.zeros(3, np.int32), np.array([0, 0, 1, 1, 2, 2], np.int32), np.arange(12, dtype=np.int32) % 6))
"""Three clusters, six below them, twelve labels."""
ENCODER = BagOptions.of({"vectors": {"width": 16}, "n_buckets": 20})
TRAINING = {"rate": 0.1, "head_rate": 2e-2, "epochs": 4, "batch_size": 16, "averaging": {"kind": "none"}}


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=80, n_labels=N_LABELS)


STILL = {**TRAINING, "n_steps": 1, "rate": 1e-30, "head_rate": 1e-30}
"""Weights stay as they begin."""


def levels_of(**changes: Any) -> Resolutions:
    return Resolutions(INDEX, FineTuningOptions.of({"n_candidates": 2, "training": [TRAINING], **changes}))


def fit(data: Dataset, run: Run = ONE, **changes: Any) -> Tagger:
    return levels_of(**changes).fit(readings(data), data.train.labels, ENCODER, seed=3, run=run)


def readings(data: Dataset) -> TextReadings:
    return TextReadings(data.train.texts)


class Trained:
    """The levels one after the other, with what is usually dropped."""

    def __init__(self, data: Dataset, levels: Resolutions, *trainings: dict[str, Any]) -> None:
        self.tasks = [levels.task(level, data.train.labels) for level in range(len(trainings))]
        self.taggers: list[Tagger] = []
        self.recalled: list[Recalled] = []
        for task, training in zip(self.tasks, trainings, strict=True):
            plan = NetworkPlan(ENCODER, TrainingOptions.of(training), seed=3)
            above = {"above": self.taggers[-1], "recalled": self.recalled[-1]} if self.taggers else {}
            given = {"above": None, "recalled": None, **above}
            self.taggers.append(levels.fit_level(task, readings(data), plan, **given, run=ONE))
            within = given["recalled"]
            self.recalled.append(levels.read_level(self.taggers[-1], readings(data), within=within, run=ONE))

    def table(self, level: int) -> Any:
        return self.taggers[level].network.head.table

    def encoder(self, level: int) -> list[Any]:
        return [value.numpy().tobytes() for value in self.taggers[level].network.encoder.state_dict().values()]


def test_the_encoder_goes_on_from_level_to_level_and_heads_are_dropped(data: Dataset) -> None:
    tagger = fit(data)
    assert isinstance(tagger.network.head, NoHead)
    assert [level["n_clusters"] for level in tagger.facts["levels"]] == [3, 6, 12]
    assert tagger.vectors(TextReadings(data.test.texts), ONE).shape == (80, tagger.network.encoder.width)
    with pytest.raises(ValueError, match="without labels"):
        tagger.top_k(TextReadings(data.test.texts), 1, ONE)
    trained = Trained(data, levels_of(), TRAINING, STILL, TRAINING)
    assert trained.encoder(0) == trained.encoder(1) != trained.encoder(2)
    assert [len(trained.table(level).weight) for level in range(3)] == [3, 6, 12]


@pytest.mark.parametrize(("most", "sizes"), [(12, [3, 6, 12]), (11, [3, 6]), (5, [3]), (1, [3])])
def test_levels_with_too_many_clusters_are_left_out(data: Dataset, most: int, sizes: list[int]) -> None:
    levels = fit(data, max_clusters=most, training=[STILL]).facts["levels"]
    assert [level["n_clusters"] for level in levels] == sizes


def test_each_level_has_its_own_training_and_the_last_one_stands_for_the_rest(data: Dataset) -> None:
    steps = [{**TRAINING, "n_steps": n} for n in (2, 5)]
    assert [level["n_steps"] for level in fit(data, training=steps).facts["levels"]] == [2, 5, 5]


def test_a_cluster_may_begin_as_its_parent(data: Dataset) -> None:
    trained = Trained(data, levels_of(bootstrap="inherit"), TRAINING, STILL, STILL)
    for level in (1, 2):
        parents = INDEX.parents[level].astype(np.int64)
        assert torch.equal(trained.table(level).weight, trained.table(level - 1).weight[parents])
        assert torch.equal(trained.table(level).bias, trained.table(level - 1).bias[parents])


def test_a_cluster_may_begin_where_a_linear_solver_puts_it(data: Dataset) -> None:
    trained = Trained(data, levels_of(solver={"max_passes": 100, "tolerance": 1e-3}), TRAINING, STILL)
    task, recalled, table = trained.tasks[1], trained.recalled[0], trained.table(1)
    margins = torch.from_numpy(recalled.vectors) @ table.weight.T + table.bias
    hits = torch.from_numpy(task.targets.to_scipy().toarray() > 0)
    own = torch.from_numpy(task.index.parents[-1].astype(np.int64))
    chosen = torch.zeros(80, 3, dtype=torch.bool).scatter_(1, torch.from_numpy(recalled.clusters).long(), True)
    chosen = (chosen | (hits.float() @ torch.nn.functional.one_hot(own).float() > 0))[:, own]
    counts = torch.from_numpy(task.label_counts().toarray()).where(hits, 1)
    scale = np.sqrt((recalled.vectors**2).sum(1).mean())
    weight, bias = (table.weight * scale).clone().requires_grad_(), table.bias.clone().requires_grad_()
    margins = torch.from_numpy(recalled.vectors / scale) @ weight.T + bias
    losses = (1 - margins.where(hits, -margins)).clamp(min=0) ** 2 * counts
    ((weight**2).sum() / 2 + (bias**2).sum() / 2 + (losses * chosen).sum()).backward()
    assert weight.grad.abs().max() < 0.05  # the minimum of the solver's objective, C = 1
    assert bias.grad.abs().max() < 0.05
    drawn = Trained(data, levels_of(bootstrap="random"), TRAINING, STILL)
    assert (drawn.table(1).bias == -1).all()


def test_clusters_are_found_within_those_of_the_level_above(data: Dataset) -> None:
    first, second = Trained(data, levels_of(), TRAINING, TRAINING).recalled
    assert first.clusters.shape == second.clusters.shape == (80, 2)
    for text in range(80):
        children = {at for at, parent in enumerate(INDEX.parents[1]) if parent in first.clusters[text]}
        assert set(second.clusters[text]) <= children
    assert (second.log_scores <= 0).all()
    right = data.train.labels.renumber(INDEX.parents[2], 6)
    assert np.mean([second.clusters[text, 0] in right[text] for text in range(80)]) > 0.8


def test_clusters_count_as_often_as_a_text_has_labels_in_them(data: Dataset) -> None:
    labels = data.train.labels
    first, second, last = (levels_of().task(level, labels) for level in range(3))
    for task, groups in ((first, INDEX.parents[1][INDEX.parents[2]]), (second, INDEX.parents[2])):
        for text in range(80):
            own = np.bincount(groups[labels[text]], minlength=task.targets.n_labels)
            assert task.label_counts()[text].toarray()[0].tolist() == own.tolist()
        some = np.array([7, 3])
        assert (task.take(some).label_counts() != task.label_counts()[some]).nnz == 0
    assert last.counts is None  # the labels themselves
    assert all(levels_of(weighting="equal").task(level, labels).counts is None for level in range(3))


def test_texts_are_read_once_between_two_levels(tiny: Callable[..., Dataset]) -> None:
    seen = Events()
    fit(tiny(n_texts=1500, n_labels=N_LABELS), Run(LocalEngine(1), seen), training=[STILL])
    assert seen.n_texts["predict"] == 2 * 1500
    assert "text vectors" not in seen.n_texts


def test_held_out_texts_are_the_same_at_all_levels_and_teach_nothing(data: Dataset) -> None:
    facts = fit(data, training=[{**TRAINING, "validation": 0.2}]).facts["levels"]
    assert all(level["validation"][-1]["score"] > 0.5 for level in facts)


def test_a_training_that_goes_on_makes_no_level_again(data: Dataset, tmp_path: Path) -> None:
    first = fit(data, Run(LocalEngine(1), stages=FolderStages.open(tmp_path / "work", {"a": 1}, resume=False)))
    seen = Events()
    again = fit(data, Run(LocalEngine(1), seen, FolderStages.open(tmp_path / "work", {"a": 1}, resume=True)))
    assert seen.n_advances["train"] == 3  # where each level stands
    assert not seen.n_texts["predict"]
    weights = (tagger.network.encoder.state_dict().values() for tagger in (first, again))
    assert all(torch.equal(one, two) for one, two in zip(*weights, strict=True))


def test_a_linear_start_without_vectors_is_refused(data: Dataset) -> None:
    recalled = Recalled(np.zeros((80, 1), np.int32), np.zeros((80, 1), np.float32))
    with pytest.raises(ValueError, match="needs text vectors"):
        linear_start(levels_of().task(1, data.train.labels), recalled, SolverOptions())


def test_needs_are_those_of_the_largest_level(data: Dataset) -> None:
    needs = levels_of().estimate_resources(data.train, (ENCODER,), measure=True)
    assert needs.memory_bytes > 0
    assert needs.seconds is not None


class Events:
    """Counts the texts and the advances of each step."""

    def __init__(self) -> None:
        self.n_texts: Counter[str] = Counter()
        self.n_advances: Counter[str] = Counter()

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        def advance(amount: int, note: str = "") -> None:
            self.n_texts[name] += amount
            self.n_advances[name] += 1

        yield advance
