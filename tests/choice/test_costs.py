"""Costs are measured with the methods themselves."""

from __future__ import annotations

from collections.abc import Callable

from longtail.choice.costs import Cost, ranker_seconds
from longtail.data.dataset import Dataset
from longtail.methods import create_method
from longtail.run.run import Run
from longtail.stacking.logistic import LogisticOptions


def test_the_cost_of_a_member_is_that_of_its_training_and_its_answers(tiny: Callable[..., Dataset]) -> None:
    split = tiny(n_texts=100).train
    measured = Cost.measured(create_method("knn"), split, Run(), 10)
    assert measured.train_s > 0
    assert 0 < measured.ask_s < 1
    counted = Cost.counted(create_method("knn"), split)
    assert counted.train_s == counted.ask_s == 0
    assert counted.needs.memory_bytes == measured.needs.memory_bytes > 0


def test_a_ranker_takes_some_time_per_candidate() -> None:
    assert 0 < ranker_seconds(LogisticOptions(), Run()) < 0.1
