"""A member that is not trained again is the one that has not seen the first fold, also after an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.methods.linear import Linear
from longtail.methods.stack import Stack
from longtail.run.progress import Advance
from longtail.stacking.folds import folds_of

RANKER = {"kind": "logistic"}
MEMBERS: list[Any] = ["linear", {"method": "knn", "options": {"n_neighbours": 3}, "retrain": False}]


class Interrupted:
    """Progress that stops the work at a step."""

    def __init__(self, at: str) -> None:
        self.at = at

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        if name == self.at:
            raise KeyboardInterrupt
        yield lambda amount, note="": None


@pytest.fixture(scope="module")
def split(tiny: Callable[..., Dataset]) -> Split:
    return tiny(n_texts=200, n_labels=10).train


def stack() -> Stack:
    return Stack(members=MEMBERS, n_folds=4, ranker=RANKER)


def test_only_members_that_are_trained_again_know_all_texts(split: Split) -> None:
    model = stack().fit(split, threads=1)
    rest = split.take(np.flatnonzero(folds_of(split, 4, 0) != 0))
    assert [member.facts_["n_texts"] for member in model.members_] == [len(split), len(rest)]
    alone = Linear(seed=0, calibrate=False).fit(split, threads=1)
    assert np.array_equal(model.members_[0].top_k(split, 5).labels, alone.top_k(split, 5).labels)
    other = type(model.members_[1])(n_neighbours=3, calibrate=False).fit(rest, threads=1)
    assert np.array_equal(model.members_[1].top_k(split, 5).labels, other.top_k(split, 5).labels)


def test_an_interrupted_training_goes_on_to_the_same_model(split: Split, tmp_path: Path) -> None:
    whole = stack().fit(split, threads=1)
    with pytest.raises(KeyboardInterrupt):
        stack().fit(split, threads=1, work=tmp_path / "work", progress=Interrupted("ranker"))
    resumed = stack().fit(split, threads=1, work=tmp_path / "work", resume=True)
    for ours, theirs in zip((whole, *whole.members_), (resumed, *resumed.members_), strict=True):
        a, b = ours.top_k(split, 5), theirs.top_k(split, 5)
        assert np.array_equal(a.labels, b.labels)
        assert np.array_equal(a.scores, b.scores)
