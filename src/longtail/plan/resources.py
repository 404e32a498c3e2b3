"""Compare what training needs with what is free, and refuse to start what will not fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from longtail.data.dataset import Split
from longtail.errors import ConfigError
from longtail.methods.base import Method
from longtail.run.log import LOG
from longtail.run.processes import check_processes, n_processes
from longtail.run.resources import ResourceEstimate, free_disk_bytes
from longtail.run.run import Run
from longtail.units import in_bytes


class Resource(NamedTuple):
    """Something that training takes a part of."""

    name: str
    needed_bytes: int
    free_bytes: int | None
    """None if unknown."""

    @property
    def is_short(self) -> bool:
        """Whether more is needed than is free."""
        return self.free_bytes is not None and self.needed_bytes > self.free_bytes

    def __str__(self) -> str:
        free = "" if self.free_bytes is None else f" ({in_bytes(self.free_bytes)} free)"
        return f"{in_bytes(self.needed_bytes)} of {self.name}{free}"


@dataclass(frozen=True)
class Plan:
    """What training needs, beside what is free."""

    estimate: ResourceEstimate
    resources: tuple[Resource, ...]
    """Memory, GPU memory where it is used, and disk."""

    @classmethod
    def of(cls, estimate: ResourceEstimate, out: Path, free_memory: int | None, free_gpu: int | None = None) -> Plan:
        """Compare an estimate with the free memory, the free memory of the GPU, and the disk that `out` is on."""
        resources = [Resource("memory", estimate.memory_bytes, free_memory)]
        if estimate.gpu_bytes:
            from longtail.nn.training.devices import free_gpu_bytes

            resources.append(Resource("GPU memory", estimate.gpu_bytes, free_gpu or free_gpu_bytes()))
        return cls(estimate, (*resources, Resource("disk", estimate.disk_bytes, free_disk_bytes(out))))

    @property
    def shortage(self) -> str | None:
        """What there is too little of, and which options make it smaller; None where all fits."""
        short = [
            f"about {in_bytes(resource.needed_bytes)} of {resource.name}, {in_bytes(resource.free_bytes or 0)} are free"
            for resource in self.resources
            if resource.is_short
        ]
        if not short:
            return None
        options = self.estimate.how_to_shrink
        return f"training needs {' and '.join(short)}; " + (
            f"make it smaller with `{options}`" if options else "use less data"
        )


def plan_training(
    model: Method,
    split: Split,
    out: Path,
    *,
    free_memory: int | None,
    measure: bool = False,
    ranks: int = 1,
    run: Run | None = None,
) -> Plan:
    """Estimate what training `model` on `split` takes.

    Args:
        model: An untrained method.
        split: The training texts.
        out: The folder of the model: its disk is looked at.
        free_memory: Bytes that were free before the texts were loaded (the estimate counts them); None if unknown.
        measure: Also estimate the time, by a few seconds of trying.
        ranks: Processes that train together on this machine, with a GPU each where there are some; then no time is
            measured. GPU memory is that of each, main memory that of all.
        run: How training will be carried out.
    """
    run = run or Run()
    model.check(split)
    if ranks < 1:
        raise ConfigError(f"ranks must be at least 1, got {ranks}")
    if ranks > 1:
        check_processes(model.name, model.trains_networks, ranks)
    with run.progress.step("count and measure" if measure else "look at the texts"), _processes(ranks):
        estimate = model.estimate_resources(split, measure=measure and ranks == 1, threads=run.engine.n_local_threads)
    if ranks > 1:  # checkpoints and model are those of all
        disk_bytes = model.estimate_resources(split).disk_bytes
        estimate = replace(estimate, memory_bytes=ranks * estimate.memory_bytes, disk_bytes=disk_bytes)
    return Plan.of(estimate, out, free_memory)


@contextmanager
def _processes(ranks: int) -> Iterator[None]:
    """Count what one of several processes takes."""
    if ranks == 1:
        yield
        return
    from longtail.nn.heads.shards import shards_of

    with shards_of(0, ranks):
        yield


def check_resources(
    model: Method, split: Split, out: Path, *, free_memory: int | None, force: bool = False, run: Run | None = None
) -> ResourceEstimate:
    """Log what training will take, and raise if that is more than there is, unless `force`.

    Arguments are those of `plan_training`. Returns the estimate.
    """
    plan = plan_training(model, split, out, free_memory=free_memory, ranks=n_processes(), run=run)
    *others, last = map(str, plan.resources)
    LOG.info(f"training {model.name} on {len(split):,} texts will take about {', '.join(others)} and {last}")
    if plan.shortage and not force:
        raise ConfigError(f"{plan.shortage}, or try all the same with `force`")
    return plan.estimate
