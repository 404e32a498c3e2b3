"""Auto trains what fits, keeps what is best on unseen texts, stops in time, and says why."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from longtail.data.dataset import Dataset, Split
from longtail.data.load import load_dataset
from longtail.errors import ConfigError
from longtail.evaluation import evaluate_model
from longtail.methods import create_method, load_model
from longtail.methods.auto import Auto
from longtail.methods.linear import Linear
from longtail.report import html_report, make_report, markdown_report
from longtail.run.progress import Advance

pytestmark = pytest.mark.slow
WITHOUT_NETWORKS: dict[str, Any] = {"leave_out": ["lightxml"]}
KILLED = """
import os, signal, sys
from contextlib import contextmanager
from longtail.data import load_dataset
from longtail.methods import create_method

class Deadly:
    left = int(sys.argv[1])
    @contextmanager
    def step(self, name, total=None, unit=""):
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1
        yield lambda amount, note="": None

auto = create_method("auto", {"budget": None, "leave_out": ["lightxml"]})
auto.fit(load_dataset("debtags-sample").train[:400], work=sys.argv[2], progress=Deadly(), threads=1)
"""


@pytest.fixture(scope="module")
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(n_texts=150, n_labels=12, named=True)


@pytest.fixture(scope="module")
def sample() -> Dataset:
    return load_dataset("debtags-sample")


@pytest.fixture(scope="module")
def model(sample: Dataset) -> Auto:
    """A model of real texts, with all the time that it takes."""
    return Auto(budget=None, **WITHOUT_NETWORKS).fit(sample.train[:1200])


def chance(n_texts: int) -> Split:
    """Texts whose labels nobody can know."""
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice([f"w{i}" for i in range(300)], 12)) for _ in range(n_texts)]
    return Split.of(texts, [[f"label{label}"] for label in rng.integers(0, 4, n_texts)])


def test_it_is_better_than_linear_on_new_texts_and_says_so(model: Auto, sample: Dataset) -> None:
    linear = Linear().fit(sample.train[:1200])
    ours, theirs = (evaluate_model(each, sample.test).metrics.values["nDCG@5"] for each in (model, linear))
    assert ours > theirs
    said = model.why()
    assert "1,200 texts" in said
    assert "trains linear, knn, lexical and linear/letters as a stack" in said
    assert "lightxml/laptop: left out, it was to be left out" in said
    assert "keeps stack: it is better: nDCG@5 0." in said


def test_a_stack_that_is_kept_has_probabilities_and_a_threshold(model: Auto, sample: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m")
    assert opened.calibration is not None
    assert opened.chain_.steps == model.chain_.steps
    threshold = opened.calibration.f1_threshold
    rows = opened.predict(sample.test.texts["text"].to_pylist()[:20], 10, threshold="auto")
    assert {suggestion.score >= threshold for row in rows for suggestion in row} == {True}


def test_the_reason_is_saved_shown_and_in_reports(model: Auto, sample: Dataset, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    opened = load_model(tmp_path / "m")
    assert isinstance(opened, Auto)
    assert opened.why() == model.why()
    assert opened.model_.name == model.model_.name == "stack"
    report = make_report(opened, evaluate_model(opened, sample.test[:50]), "sample", "test", tmp_path / "m")
    for page in (html_report(report), markdown_report(report)):
        assert "Why this model" in page
        assert "keeps stack" in page


def test_linear_is_kept_where_a_stack_is_no_better() -> None:
    texts = [f"{word} noise{number}" for number in range(200) for word in ("apple", "stone", "water")]
    split = Split.of(texts, [["a"], ["s"], ["w"]] * 200)
    model = Auto(budget=None, **WITHOUT_NETWORKS).fit(split)
    figures = {each.model: each.ndcg for each in model.outcome_.figures}
    assert figures["linear"] == figures["stack"] == 1.0
    assert model.model_.name == "linear"
    assert "keeps linear: it is at least as good: nDCG@5 1.0000, stack 1.0000 on 600 training texts" in model.why()
    assert model.calibration is not None
    assert [row[0].id for row in model.predict(["stone", "an apple"], 1)] == ["s", "a"]


def test_what_is_kept_is_the_better_one_where_nothing_can_be_known() -> None:
    model = Auto(budget=None, **WITHOUT_NETWORKS).fit(chance(60))
    figures = {each.model: each.ndcg for each in model.outcome_.figures}
    assert model.outcome_.n_held_out == 60
    assert figures[model.model_.name] == max(figures["stack"], figures["linear"])


def test_a_budget_is_kept_and_times_are_told(sample: Dataset) -> None:
    model = Auto(budget="10m", **WITHOUT_NETWORKS).fit(sample.train[:600])
    took_s = model.outcome_.took_s
    assert took_s is not None
    assert took_s < 600
    assert model.choice_.expected_s is not None
    assert " of 10 min 0 s" in model.why()


def test_a_stack_that_takes_too_long_is_given_up_for_linear(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow:
        """The first steps of the stack take for ever."""

        @contextmanager
        def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
            nonlocal late
            late += 1000 * (name == "ranker")
            yield lambda amount, note="": None

    late, clock = 0.0, time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + late)
    model = Auto(budget="5m", **WITHOUT_NETWORKS).fit(data.train, progress=Slow())
    assert model.model_.name == "linear"
    assert "keeps linear: the stack was given up: the work was stopped after" in model.why()
    assert evaluate_model(model, data.test).metrics.values["P@1"] > 0.9


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX")
def test_a_killed_training_goes_on_and_ends_with_the_same_model(sample: Dataset, tmp_path: Path) -> None:
    auto = Auto(budget=None, **WITHOUT_NETWORKS)
    auto.fit(sample.train[:400], threads=1, work=tmp_path / "whole.work").save(tmp_path / "whole")
    for at in ("8", "20", "33"):
        command = [sys.executable, "-c", KILLED, at, str(tmp_path / "work")]
        assert subprocess.run(command, check=False).returncode == -9
        again = Auto(budget=None, **WITHOUT_NETWORKS)
        again.fit(sample.train[:400], threads=1, work=tmp_path / "work", resume=True).save(tmp_path / "m")
        assert (tmp_path / "m" / "manifest.json").read_bytes() == (tmp_path / "whole" / "manifest.json").read_bytes()


def test_fields_are_those_of_all_members() -> None:
    auto = create_method("auto", fields="title,text")
    assert auto.options.fields == "title,text"
    assert auto.columns == ("title", "text")


@pytest.mark.parametrize("budget", ["5 weeks", "30s", -1, ""])
def test_a_budget_that_cannot_be_is_refused(budget: Any) -> None:
    with pytest.raises(ConfigError, match="budget"):
        create_method("auto", {"budget": budget})


def test_budgets_are_read_as_people_write_them() -> None:
    budgets = ["90s", "10m", "1h30m", "120", 120, "none", None]
    read = [create_method("auto", {"budget": budget}).options.plain()["budget"] for budget in budgets]
    assert json.loads(json.dumps(read)) == [90, 600, 5400, 120, 120, None, None]
