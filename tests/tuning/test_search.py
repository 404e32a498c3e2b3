"""The search for good options."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, LongtailError, MissingExtraError
from longtail.methods import create_method
from longtail.tuning import Trial, read_space, tune

pytest.importorskip("optuna")
SPACE = read_space(["ranker.threshold=0.01..5.0:log", "ranker.max_passes=1..20"])


@pytest.fixture
def data(tiny: Callable[..., Dataset]) -> Dataset:
    return tiny(200, 12, splits=("train", "test"))


def values_of(trials: tuple[Trial, ...]) -> list[tuple[dict[str, Any], float | None]]:
    return [(trial.values, trial.score) for trial in trials]


def test_the_best_of_all_trials_is_given_and_the_first_is_what_was_there(data: Dataset) -> None:
    found = tune(create_method("linear"), data, SPACE, n_trials=3)
    assert [trial.number for trial in found.trials] == [0, 1, 2]
    assert found.trials[0].values == {"ranker.threshold": 0.05, "ranker.max_passes": 15}
    assert found.best.score == max(trial.score or 0 for trial in found.trials)
    assert found.model.options.ranker.threshold == found.best.values["ranker.threshold"]
    assert all(0.01 <= trial.values["ranker.threshold"] <= 5 for trial in found.trials)


def test_a_threshold_that_drops_all_weights_is_not_chosen(data: Dataset) -> None:
    model = create_method("linear", {"ranker": {"threshold": 100.0}})
    found = tune(model, data, read_space(["ranker.threshold=100.0,0.05"]), n_trials=2)
    assert found.best.values == {"ranker.threshold": 0.05}
    assert (found.trials[0].score or 0) < (found.best.score or 0)


def test_the_same_seed_tries_the_same_and_another_does_not(data: Dataset) -> None:
    one, two = (tune(create_method("linear"), data, SPACE, n_trials=3).trials for _ in range(2))
    assert values_of(one) == values_of(two)
    other = tune(create_method("linear", {"seed": 5}), data, SPACE, n_trials=3).trials
    assert other[1].values != one[1].values


def test_test_texts_change_nothing(data: Dataset, tiny: Callable[..., Dataset]) -> None:
    without = Dataset("tiny", {"train": data.train}, data.vocabulary)
    assert values_of(tune(create_method("linear"), without, SPACE, n_trials=2).trials) == values_of(
        tune(create_method("linear"), data, SPACE, n_trials=2).trials
    )


def test_a_killed_search_goes_on_with_the_same_trials(data: Dataset, tmp_path: Path) -> None:
    whole = tune(create_method("linear"), data, SPACE, n_trials=4)

    def stop(trial: Trial) -> None:
        if trial.number == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(create_method("linear"), data, SPACE, n_trials=4, work=tmp_path / "w", watch=stop)
    (tmp_path / "w" / "trials.jsonl.new").write_text('{"number": 2, "val')  # a kill in the middle of writing
    told: list[int] = []
    again = tune(
        create_method("linear"), data, SPACE, n_trials=4, work=tmp_path / "w", resume=True,
        watch=lambda trial: told.append(trial.number),
    )  # fmt: skip
    assert told == [2, 3]
    assert values_of(again.trials) == values_of(whole.trials)
    lines = (tmp_path / "w" / "trials.jsonl").read_text().splitlines()
    assert [json.loads(line)["number"] for line in lines] == [0, 1, 2, 3]


def test_another_search_in_the_same_folder_is_refused(data: Dataset, tmp_path: Path) -> None:
    tune(create_method("linear"), data, SPACE, n_trials=1, work=tmp_path / "w")
    other = read_space(["ranker.max_passes=1..9"])
    with pytest.raises(ConfigError, match="begun with other data or options"):
        tune(create_method("linear"), data, other, n_trials=1, work=tmp_path / "w", resume=True)


def test_values_are_not_tried_twice_and_a_small_space_ends(data: Dataset) -> None:
    found = tune(create_method("linear"), data, read_space(["ranker.max_passes=1,15"]), n_trials=9)
    assert sorted(trial.values["ranker.max_passes"] for trial in found.trials) == [1, 15]


def test_no_trial_begins_that_would_end_too_late(data: Dataset) -> None:
    assert len(tune(create_method("linear"), data, SPACE, n_trials=9, seconds=1e-6).trials) == 1


def test_wrong_paths_and_values_are_told_before_anything_is_trained(data: Dataset) -> None:
    said: list[Trial] = []
    for text, message in (
        ("ranker.treshold=1,2", "unknown option 'ranker.treshold'; did you mean 'threshold'?"),
        ("ranker.max_passes=0,2", "ranker.max_passes must be greater than 0, got 0"),
    ):
        with pytest.raises(ConfigError, match=message.replace("?", r"\?")):
            tune(create_method("linear"), data, read_space([text]), n_trials=2, watch=said.append)
    with pytest.raises(ConfigError, match="trials must be at least 1, got 0"):
        tune(create_method("linear"), data, SPACE, n_trials=0)
    with pytest.raises(ConfigError, match="tuning needs something to try"):
        tune(create_method("linear"), data, ())
    assert not said


def test_a_trial_that_fails_is_kept_and_the_others_go_on(data: Dataset) -> None:
    space = read_space(["features.blocks.*.min_df=1,100000"])
    found = tune(create_method("linear"), data, space, n_trials=2)
    failed = next(trial for trial in found.trials if trial.values["features.blocks.*.min_df"] == 100_000)
    assert failed.score is None
    assert failed.error
    assert found.best.score is not None
    only = create_method("linear", {"features": {"blocks": [{"min_df": 100_000}]}})
    with pytest.raises(LongtailError, match="no trial of 1 could be trained; the last: "):
        tune(only, data, read_space(["features.blocks.*.min_df=100000,100001"]), n_trials=1)


def test_without_optuna_it_is_said_what_to_install(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'longtail\[tune\]'"):
        tune(create_method("linear"), data, SPACE)
