"""Choose the members for some data, a machine and a time, and say why.

Split, seconds, Run  ->  Choice: what was looked at, which methods are trained and which are not, and why
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, Self

from pydantic import Field

from longtail.choice.budget import Clock
from longtail.choice.candidates import ANCHOR, Candidate, candidates
from longtail.choice.costs import Cost, Trainable, ranker_seconds
from longtail.choice.facts import DataFacts, MachineFacts
from longtail.choice.schedule import Schedule, Sizes, schedule, together
from longtail.data.dataset import Split
from longtail.errors import ConfigError, LongtailError
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.log import LOG
from longtail.run.run import Run
from longtail.stacking.ranker import RankerOptions
from longtail.units import in_bytes, in_seconds

SMALL_ANCHOR = "linear/fast"
"""What is trained instead where the time is too short for the anchor."""
_RANKERS = {"trees": "boosted trees", "logistic": "a logistic regression (lightgbm is not installed)"}
_WORTH_MEASURING = 3
"""Other members are looked at where the time suffices for so many trainings of the anchor."""
_PLANNING = 0.35
"""Share of the time after which no further member is measured."""


class Considered(Options):
    """A method that was considered."""

    method: str
    options: dict[str, Any] = Field(default_factory=dict)
    used: bool
    why: str
    train_s: float | None = None
    """Seconds that one training takes, if that was measured."""

    def __str__(self) -> str:
        took = "" if self.train_s is None else f"; one training takes about {in_seconds(self.train_s)}"
        return f"{self.method}: {'used' if self.used else 'left out'}, {self.why}{took}"


class Choice(Options):
    """What is to be trained, and why."""

    data: DataFacts
    machine: MachineFacts | None = None
    """None where there is no time limit: then only the data decide."""
    budget_s: float | None = None
    considered: tuple[Considered, ...]
    n_ranked_folds: int
    ranker: str
    """The kind of ranker of the stack's candidates."""
    expected_s: float | None = None
    memory_bytes: int
    disk_bytes: int
    anchor_s: float = 0.0
    """Seconds of the time that are kept back for the anchor alone."""

    @property
    def members(self) -> tuple[Considered, ...]:
        """The methods that are used."""
        return tuple(one for one in self.considered if one.used)

    @staticmethod
    def write(writer: FolderWriter, choice: Choice) -> None:
        """Write a choice into a model folder, or that of a stage."""
        writer.manifest["choice"] = choice.plain()

    @classmethod
    def load(cls, folder: Folder) -> Self:
        """Open what `write` wrote."""
        return cls.of(folder.manifest["choice"])

    def log(self) -> None:
        """Log all lines."""
        for line in self.lines():
            LOG.info(line)

    def lines(self) -> list[str]:
        """Return what was looked at and chosen, in one line each, for people."""
        names = [one.method for one in self.members]
        plan = f"trains {names[0]} alone"
        if len(names) > 1:
            several = f"{', '.join(names[:-1])} and {names[-1]}"
            plan = f"trains {several} as a stack, their labels ranked by {_RANKERS[self.ranker]}"
        if self.expected_s is not None and self.budget_s is not None:
            plan += f"; takes about {in_seconds(self.expected_s)} of {in_seconds(self.budget_s)}"
        looked = [f"data: {self.data}", *([] if self.machine is None else [f"machine: {self.machine}"])]
        return [*looked, *map(str, self.considered), f"{plan} and {in_bytes(self.memory_bytes)} of memory"]


class Wishes(NamedTuple):
    """What a user asks for."""

    clock: Clock
    leave_out: tuple[str, ...]
    encoder: str | None


class StackDefaults(Protocol):
    """Options of a stack that the time depends on."""

    list_length: int
    max_ranked_texts: int
    ranker: RankerOptions


def choose(
    split: Split,
    wishes: Wishes,
    create: Callable[[str, Mapping[str, Any]], Trainable],
    defaults: StackDefaults,
    *,
    run: Run,
) -> Choice:
    """Return the choice for a split.

    Args:
        split: The training texts.
        wishes: What the user asks for.
        create: Returns an untrained method by its name and options.
        defaults: Options of the stack.
        run: How training will be carried out.
    """
    with run.progress.step("look at the data"):
        data, machine = DataFacts.about(split), MachineFacts.about(run)
    choosing = _Choosing(split, wishes, create, defaults, run, data, machine)
    for candidate in candidates(data, machine, budget_s=wishes.clock.budget_s, encoder=wishes.encoder):
        choosing.consider(candidate)
    return choosing.choice()


@dataclass
class _Choosing:
    """What has been found out so far."""

    split: Split
    wishes: Wishes
    create: Callable[[str, Mapping[str, Any]], Trainable]
    defaults: StackDefaults
    run: Run
    data: DataFacts
    machine: MachineFacts
    considered: dict[str, Considered] = field(default_factory=dict)
    costs: dict[str, Cost] = field(default_factory=dict)

    def consider(self, candidate: Candidate) -> None:
        """Find out what a candidate takes, or note why it does not come into question."""
        name, why = candidate.method, candidate.why
        if candidate.comes_in:
            cost = self._cost(candidate)
            if isinstance(cost, Cost):
                self.costs[name] = cost
            elif name == ANCHOR:
                raise ConfigError(f"auto must be able to train {ANCHOR}, but {cost}")
            else:
                why = cost
        is_measured = name in self.costs
        train_s = self.costs[name].needs.seconds if is_measured else None
        options = dict(candidate.options)
        self.considered[name] = Considered(method=name, options=options, used=is_measured, why=why, train_s=train_s)

    def _cost(self, candidate: Candidate) -> Cost | str:
        """Return what a candidate takes, or why it is not trained."""
        left_s, anchor = self.wishes.clock.left_s, self.costs.get(ANCHOR)
        if candidate.method.partition("/")[0] in self.wishes.leave_out and candidate.method != ANCHOR:
            return "it was to be left out"
        if left_s is not None and anchor is not None:
            if left_s < _WORTH_MEASURING * anchor.train_s:
                return f"the time suffices for {ANCHOR} alone"
            if left_s < (1 - _PLANNING) * (self.wishes.clock.budget_s or 0.0):
                return "the time is too short to find out how long it takes"
        try:
            cost = self._measured(candidate)
        except LongtailError as error:
            return str(error)
        needed, free = cost.needs.memory_bytes, self.machine.free_memory_bytes
        if left_s is not None and (cost.needs.seconds is None or (free is not None and needed > free)):
            return f"it needs about {in_bytes(needed)} of memory, which is not free"
        return cost

    def _measured(self, candidate: Candidate) -> Cost:
        method = self.create(candidate.method, {**candidate.options, "calibrate": False})  # as members are trained
        if self.wishes.clock.budget_s is None:
            return Cost.counted(method, self.split)
        length, is_network = self.defaults.list_length, candidate.is_network
        with self.run.progress.step(f"measure {candidate.method}"):
            return Cost.measured(method, self.split, self.run, length, is_network=is_network)

    def choice(self) -> Choice:
        """Return the choice among what was considered."""
        ranker_s = 0.0
        if self.wishes.clock.budget_s is not None and len(self.costs) > 1:
            with self.run.progress.step("measure the ranker"):
                ranker_s = ranker_seconds(self.defaults.ranker, self.run)
        sizes = Sizes(len(self.split), self.defaults.max_ranked_texts, self.defaults.list_length, ranker_s)
        plan = schedule(self.costs, sizes, self.wishes.clock.left_s) or self._small()
        for name, one in self.considered.items():
            if one.used and name not in plan.members:
                self.considered[name] = one.model_copy(update={"used": False, "why": "the time is too short for it"})
        timed = self.wishes.clock.budget_s is not None
        needs = together([self.costs[name] for name in plan.members])
        return Choice(
            data=self.data,
            machine=self.machine if timed else None,
            budget_s=self.wishes.clock.budget_s,
            considered=tuple(self.considered.values()),
            n_ranked_folds=plan.n_ranked_folds,
            expected_s=plan.seconds if timed else None,
            ranker=self.defaults.ranker.kind,
            memory_bytes=needs.memory_bytes,
            disk_bytes=needs.disk_bytes,
            anchor_s=self.costs[plan.members[0]].train_s,
        )

    def _small(self) -> Schedule:
        """Return a schedule of the small anchor alone, or raise if even that takes too long."""
        name, why = SMALL_ANCHOR, f"a smaller {ANCHOR}, because the time is too short for all of it"
        self.costs[name] = self._measured(Candidate(name, why))
        needed, left_s = self.costs[name].train_s, self.wishes.clock.left_s or 0.0
        self.considered[name] = Considered(method=name, used=True, why=why, train_s=needed)
        if needed > left_s:
            least = math.ceil((needed - left_s + (self.wishes.clock.budget_s or 0.0)) / 60)
            raise ConfigError(
                f"{name} alone takes about {in_seconds(needed)} on these texts, got a budget of "
                f"{in_seconds(self.wishes.clock.budget_s or 0.0)}; use `budget={least}m`, or less data"
            )
        return Schedule((name,), 0, needed)
