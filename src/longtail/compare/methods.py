"""Compare methods: every run in a process of its own, then the figures of all of them.

    entries, arguments of load_dataset  ->  figures as plain data; compare.json, compare.md and compare.html

A process of its own gives a run its own time and memory, and one that crashes costs the others nothing. The process
is `longtail.compare.worker`; it is sent a job, which is plain data.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longtail.compare.figures import make_comparison
from longtail.compare.runs import Entry, RunFolder, RunResult, choose_parts, claim_folder
from longtail.data.load import load_dataset
from longtail.evaluation import list_length
from longtail.labels.model_labels import check_known, labels_of_model
from longtail.metrics import MetricOptions
from longtail.report import write_comparison
from longtail.run.isolated import run_apart
from longtail.run.log import LOG
from longtail.run.run import Run
from longtail.units import in_seconds

WORKER = [sys.executable, "-m", "longtail.compare.worker"]


def compare_methods(
    entries: Sequence[Entry],
    data: Mapping[str, Any],
    *,
    anchor: str,
    out: Path | None = None,
    split: str | None = None,
    at: Sequence[int] = (1, 3, 5),
    seed: int = 0,
    force: bool = False,
    run: Run | None = None,
) -> tuple[dict[str, Any], dict[str, Path]]:
    """Train and measure `entries` on the same texts; what was done before is not done again.

    Args:
        entries: The methods, each with a name.
        data: Arguments of `load_dataset` by name, as plain data.
        anchor: The name of the entry that gains are measured against.
        out: The folder of the comparison; by default `compared/` and the name of the data.
        split: The part to evaluate on; by default dev, or a part held out of train.
        at: List lengths k to measure at.
        seed: What is held out is drawn from it.
        force: Train even if it may not fit into memory or on the disk.
        run: How the runs are carried out.

    Returns the figures, and the files that they were written to by name.
    """
    run = run or Run()
    columns = dict.fromkeys(column for entry in entries for column in entry.model.columns)
    dataset = load_dataset(**data, columns=columns, progress=run.progress)
    anchor_first = sorted(entries, key=lambda entry: entry.name != anchor)
    constants = tuple(dict.fromkeys(entry.model.options.propensity for entry in anchor_first))
    options = MetricOptions.of({"at": list(at)}).model_copy(update={"propensities": constants})
    compared = choose_parts(dataset, split, seed)
    train = compared.dataset.train
    for entry in entries:
        entry.model.check(train)
    check_known(compared.evaluated, labels_of_model(train))
    out = (out or Path("compared") / dataset.name).absolute()
    claim_folder(out, train)
    folders = {entry.name: RunFolder(out, entry.model, train, compared.evaluated) for entry in entries}
    source = Path(data["source"])
    job = {
        "data": {**data, "source": str(source.absolute() if source.exists() else source)},
        "split": split,
        "seed": seed,
        "out": str(out),
        "k": list_length(options),
        "engine": run.engine.plain(),
        "force": force,
    }
    results: dict[str, RunResult | str] = {}
    with run.progress.step("compare", len(entries), "methods") as advance:
        for number, entry in enumerate(entries, 1):
            title = f"{number} of {len(entries)}: {entry.name}"
            results[entry.name] = _run(entry, folders[entry.name], job, title, run)
            advance(1)
    figures = make_comparison(
        compared,
        entries,
        results,
        anchor=anchor,
        options=options,
        folders={name: folder.model for name, folder in folders.items()},
        progress=run.progress,
    )
    return figures, write_comparison(figures, out)


def _run(entry: Entry, folder: RunFolder, job: Mapping[str, Any], title: str, run: Run) -> RunResult | str:
    """Return what the run of an entry left, or why it failed; it is done now if it was not done before."""
    result = folder.result(job["k"])
    if result is not None:
        LOG.info(f"{title}, done before")
        return result
    LOG.info(f"{title}, trained before" if folder.costs() else title)
    folder.path.mkdir(parents=True, exist_ok=True)
    own_job = {**job, "method": entry.model.name, "options": entry.model.options.plain()}
    ended = run_apart(WORKER, own_job, run.progress, _log_warnings, folder.log)
    result = folder.result(job["k"])
    if result is not None:
        LOG.info(f"{entry.name}: trained in {in_seconds(result.costs.train_s)}")
        return result
    error = ended.error or "it left nothing behind"
    LOG.warning(f"{entry.name} failed: {error}")
    return error


def _log_warnings(level: int, text: str) -> None:
    if level >= logging.WARNING:
        LOG.log(level, text)
