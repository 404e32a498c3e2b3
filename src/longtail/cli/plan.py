"""`longtail plan`: what training will take on this machine, before it begins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import (
    RUN_PANEL,
    Data,
    Format,
    Json,
    LabelColumn,
    LabelSeparator,
    MethodName,
    Quiet,
    Read,
    Settings,
    TextColumn,
    Threads,
    VocabularyFile,
)
from longtail.cli.room import Row, rows_of, shortage
from longtail.cli.screen import Screen, in_bytes, in_seconds, write_json
from longtail.cli.train import Config, Fields, TrainSplit

if TYPE_CHECKING:
    from longtail.machine import Needs

Place = Annotated[
    Path, typer.Option("--out", "-o", metavar="MODEL", help="Where the model will be: for the disk's free space.")
]
CountOnly = Annotated[
    bool, typer.Option("--count-only", help="Do not measure: quicker, but without the time.", rich_help_panel=RUN_PANEL)
]
SHOWN_SHARE = 0.02
"""Parts of the memory that are less than this are not shown by themselves."""


def plan(
    data: Data,
    method: MethodName = "linear",
    config: Config = None,
    settings: Settings = None,
    fields: Fields = None,
    split: TrainSplit = "train",
    out: Place = Path("model"),
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    threads: Threads = None,
    count_only: CountOnly = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Tell what training on DATA will take in memory, disk and time; exit code 1 where it will not fit."""
    from longtail.cli.source import choose_method, load_data
    from longtail.engines.local import LocalEngine
    from longtail.machine import free_memory_bytes

    screen = Screen(quiet)
    free_memory = free_memory_bytes()
    LocalEngine(threads)
    model = choose_method(method, config, settings, fields)
    dataset = load_data(
        data,
        screen.progress,
        columns=model.columns,
        optional=model.optional_columns,
        format=format,
        vocabulary=vocabulary,
        read=read,
        text_column=text_column,
        label_column=label_column,
        label_separator=label_separator,
    )
    texts = dataset.split(split)
    model.check(texts)
    with screen.progress.step("count" if count_only else "count and measure"):
        needs = model.needs(texts, measure=not count_only, threads=threads)
    rows = rows_of(needs, out, free_memory)
    short = shortage(needs, rows)
    sizes = f"{len(texts):,} texts, {texts.labels.n_seen():,} labels"
    if as_json:
        write_json(
            {"method": model.name, "n_texts": len(texts), "n_labels": texts.labels.n_seen(), "fits": short is None}
            | {row.what.replace(" ", "_"): {"needed": row.needed, "free": row.free} for row in rows}
            | {"seconds": needs.seconds, "relief": needs.relief, "parts": dict(needs.parts)}
        )
    else:
        _show(screen, f"{model.name} on {dataset.name}: {sizes}", needs, rows)
        took = "" if needs.seconds is None else f", and takes about {in_seconds(needs.seconds)}"
        typer.echo(f"it does not fit: {short}" if short else f"it fits{took}")
    if short:
        raise typer.Exit(1)


def _show(screen: Screen, title: str, needs: Needs, rows: list[Row]) -> None:
    from longtail.report.tables import Table

    cells: list[list[str]] = []
    largest = "GPU memory" if needs.gpu_bytes else "memory"
    for row in rows:
        cells.append([row.what, in_bytes(row.needed), "–" if row.free is None else in_bytes(row.free)])
        if row.what == largest:
            shown = [part for part in needs.parts if part[1] >= SHOWN_SHARE * row.needed]
            cells += [[f"  {name}", in_bytes(size), ""] for name, size in shown]
    if needs.seconds is not None:
        cells.append(["time", in_seconds(needs.seconds), ""])
    screen.table(Table(["", "needed", "free"], cells), title)
