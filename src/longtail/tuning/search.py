"""Search for the options that find the labels of held-out texts best.

    method, data, what to try  ->  trials: values, nDCG@5 on dev; and the best options

The first trial has the options as they were given. The next ones are chosen by a tree-structured Parzen estimator
(optuna) that draws from seed and number of the trial alone: a search that was killed goes on with the same trials.
Finished trials are lines of a JSON file in the work folder, and an unfinished training is resumed there.

Texts of test are never looked at.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError, LongtailError, MissingExtraError
from longtail.evaluation import evaluate_model
from longtail.methods.base import Method
from longtail.metrics import MetricOptions
from longtail.progress import SILENT, Progress
from longtail.settings import value_at, with_values
from longtail.stages import FolderStages
from longtail.tuning.space import Choices, Tried

METRIC = "nDCG@5"
_FILE = "trials.jsonl"
_RANDOM = 4
"""Trials that are drawn at random before what was found guides the choice."""
_DRAWS = 50
"""Draws that may give values that were tried before, until all are said to be tried."""


@dataclass(frozen=True)
class Trial:
    """Values that were tried, and what they gave."""

    number: int
    values: dict[str, Any]
    score: float | None
    """None where training failed."""
    seconds: float
    error: str | None = None


@dataclass(frozen=True)
class Tuned:
    """What a search found."""

    model: Method
    """Untrained, with the best options."""
    best: Trial
    trials: tuple[Trial, ...]


def tune(
    model: Method,
    dataset: Dataset,
    space: Sequence[Tried],
    *,
    n_trials: int = 10,
    seconds: float | None = None,
    threads: int | None = None,
    progress: Progress = SILENT,
    work: str | Path | None = None,
    resume: bool = False,
    watch: Callable[[Trial], None] = lambda trial: None,
) -> Tuned:
    """Try options of `model`; no trial begins that would probably end later than `seconds` after the start."""
    _check(model, space, n_trials)
    dataset = dataset.hold_out(seed=model.options.seed)
    search = _Search(model, dataset, space, threads, work, resume)
    spent = sum(trial.seconds for trial in search.trials)
    with progress.step("tune", n_trials, "trials") as advance:
        advance(len(search.trials))
        while len(search.trials) < n_trials:
            done = len(search.trials)
            if seconds is not None and done and spent * (done + 1) / done > seconds:
                break
            values = search.ask()
            if values is None:
                break
            search.run(values, progress)
            spent += search.trials[-1].seconds
            watch(search.trials[-1])
            advance(1)
    return search.result()


class _Search:
    """The trials so far, and where they are kept."""

    def __init__(
        self,
        model: Method,
        dataset: Dataset,
        space: Sequence[Tried],
        threads: int | None,
        work: str | Path | None,
        resume: bool,
    ) -> None:
        self.model, self.space, self.threads = model, space, threads
        self.train, self.dev = dataset.train, dataset.dev
        self.plain = model.options.plain()
        self.folder: Path | None = None
        self.trials: list[Trial] = []
        if work is not None:
            self.folder = FolderStages.open(work, self._key(), resume).folder
            file = self.folder / _FILE
            lines = (
                file.read_bytes().split(b"\n")[:-1] if file.exists() else []
            )  # a line that a kill cut off has no end
            self.trials = [Trial(**json.loads(line)) for line in lines]

    def ask(self) -> dict[str, Any] | None:
        """The values to try next; None where all were tried."""
        if not self.trials:
            return {tried.path: value_at(self.plain, tried.path) for tried in self.space}
        study = _study(self.space, self.trials)
        tried = {json.dumps(trial.values) for trial in self.trials}
        for draw in range(_DRAWS):
            study.sampler = _sampler(self.model.options.seed, len(self.trials), draw)
            values = study.ask(_distributions(self.space)).params
            if json.dumps(values) not in tried:
                return dict(values)
        return None

    def run(self, values: dict[str, Any], progress: Progress) -> None:
        """Train with these values, and keep what came of it."""
        number, start = len(self.trials), time.perf_counter()
        work = None if self.folder is None else self.folder / f"trial-{number}"
        score, error = None, None
        try:
            model = type(self.model).from_options(with_values(self.plain, values))
            model.fit(self.train, threads=self.threads, progress=progress, work=work, resume=True)
            score = _score(model, self.dev, self.threads)
        except LongtailError as found:
            error = str(found)
        self.trials.append(Trial(number, values, score, round(time.perf_counter() - start, 3), error))
        if self.folder is not None and work is not None:
            written = self.folder / f"{_FILE}.new"
            written.write_text("".join(json.dumps(asdict(trial)) + "\n" for trial in self.trials), encoding="utf-8")
            written.replace(self.folder / _FILE)
            shutil.rmtree(work, ignore_errors=True)

    def result(self) -> Tuned:
        """The best trial; the earlier one of two that are as good."""
        good = [trial for trial in self.trials if trial.score is not None]
        if not good:
            raise LongtailError(f"no trial of {len(self.trials)} could be trained; the last: {self.trials[-1].error}")
        best = max(good, key=lambda trial: trial.score or 0.0)
        model = type(self.model).from_options(with_values(self.plain, best.values))
        return Tuned(model, best, tuple(self.trials))

    def _key(self) -> dict[str, Any]:
        space = [{"kind": type(tried).__name__, **asdict(tried)} for tried in self.space]
        data = {"train": self.train.fingerprint, "dev": self.dev.fingerprint}
        return {
            "method": self.model.name,
            "options": self.plain,
            "tune": space,
            "longtail": version("longtail"),
            **data,
        }


def _check(model: Method, space: Sequence[Tried], n_trials: int) -> None:
    """Tell what is wrong before anything is trained."""
    if find_spec("optuna") is None:
        raise MissingExtraError("tuning needs optuna, not installed here; install with pip install 'longtail[tune]'")
    if n_trials < 1:
        raise ConfigError(f"trials must be at least 1, got {n_trials}")
    if not space:
        raise ConfigError("tuning needs something to try, got nothing; such as --try training.rate=5e-5..2e-4:log")
    plain = model.options.plain()
    for tried in space:
        for value in tried.ends:
            type(model).from_options(with_values(plain, {tried.path: value}))


def _score(model: Method, dev: Split, threads: int | None) -> float:
    found = evaluate_model(model, dev, MetricOptions(at=(5,)), threads=threads)
    return float(found.metrics.values[METRIC])


def _distributions(space: Sequence[Tried]) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    made: dict[str, Any] = {}
    for tried in space:
        if isinstance(tried, Choices):
            made[tried.path] = CategoricalDistribution(tried.values)
        elif isinstance(tried.low, int) and isinstance(tried.high, int):
            made[tried.path] = IntDistribution(tried.low, tried.high, log=tried.log)
        else:
            made[tried.path] = FloatDistribution(tried.low, tried.high, log=tried.log)
    return made


def _study(space: Sequence[Tried], trials: Sequence[Trial]) -> Any:
    """What optuna is to know: all trials whose values lie in the space."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize")
    known = _distributions(space)
    for trial in trials:
        if trial.score is not None and all(_inside(known[path], value) for path, value in trial.values.items()):
            study.add_trial(optuna.create_trial(params=trial.values, distributions=known, value=trial.score))
    return study


def _inside(distribution: Any, value: Any) -> bool:
    choices = getattr(distribution, "choices", None)
    if choices is not None:
        return value in choices
    return isinstance(value, int | float) and distribution.low <= value <= distribution.high


def _sampler(*numbers: int) -> Any:
    from optuna.samplers import TPESampler

    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % (1 << 32)
    return TPESampler(seed=mixed, n_startup_trials=_RANDOM)
