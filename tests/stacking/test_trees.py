"""Boosted trees as arrays."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from longtail.errors import ModelFormatError
from longtail.persist import Folder, write_folder
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.stacking.trees import Trees, TreesOptions

lightgbm = pytest.importorskip("lightgbm")
RNG = np.random.default_rng(0)
FEATURES = RNG.normal(size=(600, 4)).astype(np.float32)
RIGHT = FEATURES[:, 0] * FEATURES[:, 1] + RNG.normal(scale=0.3, size=600) > 0
PER_TEXT = np.full(100, 6)
OPTIONS = TreesOptions(n_trees=12, n_leaves=7, min_leaf=5)


def fit(objective: str = "binary", threads: int = 1) -> Trees:
    options = OPTIONS.model_copy(update={"objective": objective})
    return Trees.fit(CandidateExamples(FEATURES, RIGHT, PER_TEXT), options, seed=1, run=Run.of(threads=threads))


def test_sums_are_those_of_lightgbm() -> None:
    settings = {"objective": "binary", "num_leaves": 7, "learning_rate": OPTIONS.rate, "min_data_in_leaf": 5}
    settings |= {"lambda_l2": OPTIONS.l2, "deterministic": True, "force_row_wise": True, "seed": 1, "verbosity": -1}
    booster = lightgbm.train(settings, lightgbm.Dataset(FEATURES, RIGHT.astype(np.float32)), 12)
    expected = booster.predict(FEATURES, raw_score=True)
    assert fit("binary").scores(FEATURES, Run()) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("objective", ["binary", "lambdarank", "both"])
def test_right_candidates_score_higher(objective: str) -> None:
    scores = fit(objective).scores(FEATURES, Run())
    assert scores[RIGHT].mean() > scores[~RIGHT].mean() + 0.2


def test_both_objectives_are_the_mean_of_scores_of_one_spread() -> None:
    binary, ranked, both = (fit(one).scores(FEATURES, Run()) for one in ("binary", "lambdarank", "both"))
    assert both == pytest.approx((binary + ranked * binary.std() / ranked.std()) / 2, abs=1e-5)


def test_the_number_of_threads_does_not_matter() -> None:
    one, two = fit(threads=1), fit(threads=2)
    assert all((vars(one)[name] == vars(two)[name]).all() for name in vars(one))


TRAINS = """
import os
import numpy as np
from longtail.run.run import Run
from longtail.stacking.examples import CandidateExamples
from longtail.stacking.trees import Trees, TreesOptions

before = dict(os.environ)
features = np.arange(80, dtype=np.float32).reshape(40, 2)
examples = CandidateExamples(features, features[:, 0] > 40, np.full(8, 5))
Trees.fit(examples, TreesOptions(n_trees=2, min_leaf=2), seed=0, run=Run.of(threads=1))
assert dict(os.environ) == before
"""


@pytest.mark.parametrize(("decided", "waits"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")])
def test_threads_that_wait_sleep_unless_the_user_wants_them_to_spin(decided: dict[str, str], waits: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    environment |= {"OMP_DISPLAY_ENV": "true", **decided}
    ended = subprocess.run(
        [sys.executable, "-c", TRAINS], env=environment, stderr=subprocess.PIPE, text=True, check=True
    )
    assert f"OMP_WAIT_POLICY = '{waits}'" in ended.stderr


def saved(tmp_path: Path, trees: Trees) -> Folder:
    with write_folder(tmp_path / "model", "model") as writer:
        trees.save(writer, "ranker")
    return Folder(tmp_path / "model", "model")


def test_trees_are_the_same_after_saving(tmp_path: Path) -> None:
    trees = fit()
    opened = Trees.load(saved(tmp_path, trees), "ranker", 4)
    assert (opened.scores(FEATURES, Run()) == trees.scores(FEATURES, Run())).all()


@pytest.mark.parametrize(
    ("array", "value"),
    [("feature", 4), ("left", 0), ("right", 10**6), ("roots", -1), ("roots", 10**6)],
)
def test_nodes_that_would_be_read_out_of_range_or_for_ever_are_refused(array: str, value: int, tmp_path: Path) -> None:
    trees = fit()
    getattr(trees, array)[0] = value
    with pytest.raises(ModelFormatError, match="damaged"):
        Trees.load(saved(tmp_path, trees), "ranker", 4)
