"""One run of `longtail compare`, in a process of its own: python -m longtail.cli.alone, with the job on standard input.

The job is plain data: data (name, how it is read), method, options, split, seed, out, k, threads, force.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from longtail.errors import ConfigError
from longtail.progress import Progress

COMMAND = [sys.executable, "-m", "longtail.cli.alone"]


def work(job: dict[str, Any], progress: Progress) -> None:
    """Train and predict; see `longtail.compare.do_run`."""
    from longtail.cli.room import rows_of, shortage
    from longtail.cli.source import load_data
    from longtail.compare import RunFolder, choose_parts, do_run
    from longtail.machine import free_memory_bytes
    from longtail.methods.base import METHODS

    free_memory = free_memory_bytes()
    model = METHODS.get(job["method"]).from_options(job["options"])
    how = {**job["how"], "vocabulary": Path(job["how"]["vocabulary"]) if job["how"]["vocabulary"] else None}
    dataset = load_data(job["data"], progress, columns=model.columns, optional=model.optional_columns, **how)
    dataset, _, evaluated = choose_parts(dataset, job["split"], job["seed"])
    train = dataset.train
    model.check(train)
    run = RunFolder(Path(job["out"]), model, train, evaluated)
    if run.costs() is None and not job["force"]:
        with progress.step("look at the texts"):
            needs = model.needs(train)
        short = shortage(needs, rows_of(needs, run.path, free_memory))
        if short:
            raise ConfigError(f"{short}, or try all the same with --force")
    held_out = dataset.facts.get("held_out")
    facts = {"name": dataset.name, "source": job["data"], "split": "train"}
    facts |= {"held_out": held_out} if held_out else {}
    do_run(run, model, train, evaluated, facts, job["k"], job["threads"], progress)


if __name__ == "__main__":
    from longtail.engines.apart import answer

    sys.exit(answer(work))
