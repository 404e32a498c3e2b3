"""`longtail plan`: estimate what training will need on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import (
    MethodFlags,
    NamedDataFlags,
    RunFlags,
    TrainSplit,
    in_flags,
    option,
    run_option,
    with_flags,
)
from longtail.cli.screen import Screen, write_json
from longtail.tables import Table
from longtail.units import in_bytes, in_seconds

if TYPE_CHECKING:
    from longtail.plan import Plan

Place = Annotated[Path, option("Where the model will be, to check free disk space.", "MODEL", "--out", "-o")]
CountOnly = Annotated[bool, run_option("Do not measure: faster, but without the time.", None, "--count-only")]
Ranks = Annotated[
    int,
    option(
        "Processes that torchrun will start: each has a share of a batch and of the labels; GPU memory is that of one.",
        "N",
        "--ranks",
    ),
]
SHOWN_SHARE = 0.02
"""Parts of the memory below this share are not shown."""


@with_flags
def plan(
    data: NamedDataFlags,
    method: MethodFlags,
    flags: RunFlags,
    split: TrainSplit = "train",
    out: Place = Path("model"),
    count_only: CountOnly = False,
    ranks: Ranks = 1,
) -> None:
    """Estimate the memory, disk and time that training on DATA needs; exit code 1 if it will not fit."""
    from longtail.plan import plan_training
    from longtail.run.resources import free_memory_bytes

    free_memory, run = free_memory_bytes(), flags.run
    with run.progress.step("load the method"):
        model = method.create()
    dataset = data.load(model, run.progress)
    texts = dataset.split(split)
    measure = not count_only and ranks == 1
    planned = plan_training(model, texts, out, free_memory=free_memory, measure=measure, ranks=ranks, run=run)
    needs, n_labels = planned.estimate, texts.labels.n_seen()
    if flags.as_json:
        write_json(
            {"method": model.name, "n_texts": len(texts), "n_labels": n_labels, "fits": planned.shortage is None}
            | {
                row.name.replace(" ", "_"): {"needed": row.needed_bytes, "free": row.free_bytes}
                for row in planned.resources
            }
            | {"seconds": needs.seconds, "how_to_shrink": needs.how_to_shrink, "parts": dict(needs.parts)}
        )
    else:
        title = f"{model.name} on {dataset.name}: {len(texts):,} texts, {n_labels:,} labels"
        _show(flags.screen, title, planned)
    if planned.shortage:
        raise typer.Exit(1)


def _show(screen: Screen, title: str, planned: Plan) -> None:
    """Print needed and free resources, the parts of the largest, and whether all fits."""
    needs = planned.estimate
    cells: list[list[str]] = []
    largest = "GPU memory" if needs.gpu_bytes else "memory"
    for row in planned.resources:
        cells.append(
            [row.name, in_bytes(row.needed_bytes), "–" if row.free_bytes is None else in_bytes(row.free_bytes)]
        )
        if row.name == largest:
            shown = [part for part in needs.parts if part[1] >= SHOWN_SHARE * row.needed_bytes]
            cells += [[f"  {name}", in_bytes(size), ""] for name, size in shown]
    if needs.seconds is not None:
        cells.append(["time", in_seconds(needs.seconds), ""])
    screen.table(Table(["", "needed", "free"], cells), title)
    took = "" if needs.seconds is None else f", and takes about {in_seconds(needs.seconds)}"
    typer.echo(in_flags(f"it does not fit: {planned.shortage}") if planned.shortage else f"it fits{took}")
