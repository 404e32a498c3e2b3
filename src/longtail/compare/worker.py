"""Do one run of a comparison in its own process: python -m longtail.compare.worker, the job on standard input.

The job is plain data: data (arguments of load_dataset), method, options, split, seed, out, k, engine, force.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longtail.run.progress import Progress


def work(job: dict[str, Any], progress: Progress) -> None:
    """Train and predict, unless that was done; refuses to train what will not fit."""
    from longtail.compare.runs import TRAIN, RunFolder, choose_parts, do_run
    from longtail.methods.base import METHODS
    from longtail.plan import check_resources
    from longtail.run.engines import engine_of
    from longtail.run.resources import free_memory_bytes
    from longtail.run.run import Run
    from longtail.training import data_facts, load_for

    free_memory = free_memory_bytes()
    run = Run(engine_of(job["engine"]), progress)
    model = METHODS.get(job["method"]).from_options(job["options"])
    dataset, _, evaluated = choose_parts(load_for(model, job["data"], progress), job["split"], job["seed"])
    folder = RunFolder(Path(job["out"]), model, dataset.train, evaluated)
    if folder.costs() is None:
        check_resources(model, dataset.train, folder.path, free_memory=free_memory, force=job["force"], run=run)
    do_run(folder, facts=data_facts(dataset, job["data"]["source"], TRAIN), k=job["k"], run=run)


if __name__ == "__main__":
    from longtail.run.isolated import answer

    raise SystemExit(answer(work))
