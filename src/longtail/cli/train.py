"""`longtail train`: train a model on a data set and save it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.flags import (
    EngineFlags,
    Force,
    MethodFlags,
    NamedDataFlags,
    Resume,
    TailWeight,
    TrainSplit,
    option,
    with_flags,
)
from longtail.cli.screen import write_json
from longtail.units import in_bytes, in_seconds

Out = Annotated[Path, option("The model's folder; an older one is replaced at the end.", "MODEL", "--out", "-o")]
HoldOut = Annotated[
    bool, option("Keep a tenth of the texts (4,000 at most) out, for longtail evaluate.", None, "--hold-out")
]
Add = Annotated[
    str | None,
    option(
        "Also train on these texts, such as those that an older model was trained on; where DATA, such as reviews, has "
        "a text too, its labels count.",
        "DATA",
        "--add",
    ),
]


NoCalibrate = Annotated[
    bool,
    option(
        "Leave scores as the method gives them, and train networks on all texts; otherwise scores are made "
        "probabilities, which takes up to 30 % longer.",
        None,
        "--no-calibrate",
    ),
]


@with_flags
def train(
    data: NamedDataFlags,
    out: Out,
    method: MethodFlags,
    flags: EngineFlags,
    split: TrainSplit = "train",
    hold_out: HoldOut = False,
    add: Add = None,
    tail_weight: TailWeight = None,
    no_calibrate: NoCalibrate = False,
    resume: Resume = False,
    force: Force = False,
) -> None:
    """Train a model on DATA and save it."""
    from longtail.methods.base import MODEL
    from longtail.persist import check_replaceable
    from longtail.plan import check_resources
    from longtail.report.contents import folder_bytes
    from longtail.run.processes import is_main_process
    from longtail.run.resources import free_memory_bytes
    from longtail.training import data_facts, fit_and_save, load_with_further

    screen, run = flags.screen, flags.run
    free_memory = free_memory_bytes()  # before the texts are in memory: what training needs counts them
    check_replaceable(out, MODEL)
    with screen.progress.step("load the method"):
        model = method.create(tail_weight=tail_weight, calibrate=False if no_calibrate else None)
    if add is None:
        dataset = data.load(model, screen.progress)
    else:
        dataset = load_with_further(model, data.arguments(), add, split, screen.progress)
    if hold_out:
        whole, dataset = dataset, dataset.hold_out(seed=model.options.seed)
        screen.note(
            f"{dataset.name} has a dev part; nothing more is held out"
            if dataset is whole
            else f"{len(dataset.dev):,} of {len(whole.train):,} texts are held out as dev"
        )
    texts = dataset.split(split)
    needs = check_resources(model, texts, out, free_memory=free_memory, force=force, run=run)
    start = time.perf_counter()
    fit_and_save(model, texts, out, facts=data_facts(dataset, data.data, split), resume=resume, run=run)
    if not is_main_process():
        raise typer.Exit
    outcome = {
        "model": str(out),
        "method": model.name,
        "n_texts": model.facts_["n_texts"],
        "n_labels": model.facts_["n_labels"],
        "n_labels_without_texts": model.facts_["n_labels_without_texts"],
        "bytes": folder_bytes(out),
        "train_s": time.perf_counter() - start,
        "expected": {name: getattr(needs, name) for name in ("memory_bytes", "gpu_bytes", "disk_bytes")},
        "facts": model.facts_,
    }
    if flags.as_json:
        write_json(outcome)
    else:
        size, took = in_bytes(outcome["bytes"]), in_seconds(outcome["train_s"])
        typer.echo(
            f"{out}: {outcome['n_labels']:,} labels from {outcome['n_texts']:,} texts, {size}, trained in {took}"
        )
