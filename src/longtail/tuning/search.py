"""Search for the options that find the labels of held-out texts best.

    method, data, search space  ->  trials (values, nDCG@5 on dev) and the best options

The first trial uses the given options. The next ones are chosen by a tree-structured Parzen estimator (optuna) whose
draws depend only on the seed and the number of the trial: a search that was killed continues with the same trials.
Finished trials are lines of a JSON file in the work folder, and an unfinished training is resumed there.

Texts of test are never used.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from longtail.data.dataset import Dataset
from longtail.errors import ConfigError, LongtailError, MissingExtraError
from longtail.evaluation import evaluate_model
from longtail.files import write_text
from longtail.methods.base import Method
from longtail.metrics import MetricOptions
from longtail.run.progress import SILENT
from longtail.run.run import Run
from longtail.run.stages import FolderStages, claimed
from longtail.settings import value_at, with_values
from longtail.training import tell_kept
from longtail.tuning.space import Choices, Tried

METRIC = "nDCG@5"
_FILE = "trials.jsonl"
_RANDOM = 4
"""Trials that are drawn at random before earlier results guide the choice."""
_DRAWS = 50
"""Draws of values that were tried before, until all values count as tried."""


@dataclass(frozen=True)
class Trial:
    """Values of the options, and the score that they gave."""

    number: int
    values: dict[str, Any]
    score: float | None
    """None if training failed."""
    seconds: float
    error: str | None = None


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

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
    run: Run | None = None,
    work: str | Path | None = None,
    resume: bool = False,
    watch: Callable[[Trial], None] = lambda trial: None,
) -> Tuned:
    """Search for the options of `model` that find the labels of dev best.

    Args:
        model: An untrained method; its options are tried first.
        dataset: Has a dev part, or one is held out of train.
        space: What to try.
        n_trials: Trainings, those of an earlier search that is resumed included.
        seconds: No trial begins that would probably end later than this after the start.
        run: How trainings are carried out.
        work: A folder for finished trials and the stages of the current one.
        resume: Go on with the search in `work`.
        watch: Is called with every finished trial.
    """
    run = run or Run()
    _check(model, space, n_trials)
    search = _Search(model, dataset.hold_out(seed=model.options.seed), space, run)
    with claimed(work):
        if work is not None:
            search.open(Path(work), resume)
        spent = sum(trial.seconds for trial in search.trials)
        try:
            with run.progress.step("tune", n_trials, "trials") as advance:
                advance(len(search.trials))
                while len(search.trials) < n_trials:
                    done = len(search.trials)
                    if seconds is not None and done and spent * (done + 1) / done > seconds:
                        break
                    values = search.ask()
                    if values is None:
                        break
                    search.try_values(values)
                    spent += search.trials[-1].seconds
                    watch(search.trials[-1])
                    advance(1)
            return search.result()
        except (KeyboardInterrupt, LongtailError):
            if work is not None:
                tell_kept(Path(work), "trials")
            raise


class _Search:
    """The trials so far, and where they are kept."""

    def __init__(self, model: Method, dataset: Dataset, space: Sequence[Tried], run: Run) -> None:
        self.model, self.space, self.run = model, space, run
        self.train, self.dev = dataset.train, dataset.dev
        self.plain = model.options.plain()
        self.folder: Path | None = None
        self.trials: list[Trial] = []

    def open(self, work: Path, resume: bool) -> None:
        """Keep trials in `work`, and read those that are there."""
        self.folder = FolderStages.open(work, self._key(), resume).folder
        file = self.folder / _FILE
        lines = file.read_bytes().split(b"\n")[:-1] if file.exists() else []  # a line that a kill cut off has no end
        self.trials = [Trial(**json.loads(line)) for line in lines]

    def ask(self) -> dict[str, Any] | None:
        """Return the values to try next; None if all were tried."""
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

    def try_values(self, values: dict[str, Any]) -> None:
        """Train with these values and keep the score."""
        number, start = len(self.trials), time.perf_counter()
        work = None if self.folder is None else self.folder / f"trial-{number}"
        score, error = None, None
        try:
            # The score looks at the order of labels only.
            model = type(self.model).from_options({**with_values(self.plain, values), "calibrate": False})
            model.fit(self.train, run=self.run, work=work, resume=True)
            evaluation = evaluate_model(model, self.dev, MetricOptions(at=(5,)), run=replace(self.run, progress=SILENT))
            score = float(evaluation.metrics.values[METRIC])
        except LongtailError as failure:
            error = str(failure)
        self.trials.append(Trial(number, values, score, round(time.perf_counter() - start, 3), error))
        if self.folder is not None and work is not None:
            write_text(self.folder / _FILE, "".join(json.dumps(asdict(trial)) + "\n" for trial in self.trials))
            shutil.rmtree(work, ignore_errors=True)

    def result(self) -> Tuned:
        """Return the best trial, the earliest of equals; raise if all failed."""
        good = [trial for trial in self.trials if trial.score is not None]
        if not good:
            raise LongtailError(f"no trial of {len(self.trials)} could be trained; the last: {self.trials[-1].error}")
        best = max(good, key=lambda trial: trial.score or 0.0)
        model = type(self.model).from_options(with_values(self.plain, best.values))
        return Tuned(model, best, tuple(self.trials))

    def _key(self) -> dict[str, Any]:
        space = [{"kind": type(tried).__name__, **asdict(tried)} for tried in self.space]
        about = {"method": self.model.name, "options": self.plain, "tune": space, "longtail": version("longtail")}
        return about | {"train": self.train.fingerprint, "dev": self.dev.fingerprint}


def _check(model: Method, space: Sequence[Tried], n_trials: int) -> None:
    """Raise if something is wrong, before anything is trained."""
    if find_spec("optuna") is None:
        raise MissingExtraError("tuning needs optuna, not installed here; install with pip install 'longtail[tune]'")
    if n_trials < 1:
        raise ConfigError(f"trials must be at least 1, got {n_trials}")
    if not space:
        raise ConfigError("tuning needs something to try, got nothing; such as training.rate=5e-5..2e-4:log")
    plain = model.options.plain()
    for tried in space:
        for value in tried.ends:
            type(model).from_options(with_values(plain, {tried.path: value}))


def _distributions(space: Sequence[Tried]) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    def distribution(tried: Tried) -> Any:
        if isinstance(tried, Choices):
            return CategoricalDistribution(tried.values)
        if isinstance(tried.low, int) and isinstance(tried.high, int):
            return IntDistribution(tried.low, tried.high, log=tried.log)
        return FloatDistribution(tried.low, tried.high, log=tried.log)

    return {tried.path: distribution(tried) for tried in space}


def _study(space: Sequence[Tried], trials: Sequence[Trial]) -> Any:
    """Return an optuna study of all trials whose values lie in the space."""
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
