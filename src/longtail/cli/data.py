"""`longtail data`: check data sets and convert them to other layouts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.flags import Json, NamedDataFlags, Quiet, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import DataError

Plots = Annotated[Path | None, option("Draw label frequencies and text lengths there.", "FOLDER")]
ReportFolder = Annotated[Path | None, option("Write data.html, data.md and data.json there.", "FOLDER", "--report")]
Target = Annotated[
    Path, typer.Argument(metavar="TARGET", help="A new folder, or a .jsonl, .csv, .tsv or .parquet file.")
]
OneSplit = Annotated[str | None, option("The part to write into a file.", "NAME", "--split")]
Fields = Annotated[str | None, option("Columns of texts to keep, such as title,text; all by default.", "NAMES")]


@with_flags
def check(
    data: NamedDataFlags,
    report: ReportFolder = None,
    plots: Plots = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Count texts and labels and look for faults; exit code 1 if something would break training."""
    from longtail.data.doctor import examination_markdown, examine
    from longtail.data.load import load_dataset
    from longtail.data.plots import plot_examination

    progress = Screen(quiet).progress
    examination = examine(load_dataset(**data.arguments(), progress=progress), progress)
    pictures = plot_examination(examination, plots) if plots is not None else []
    files = {}
    if report is not None:
        from longtail.report import write_examination

        files = write_examination(examination, report)
    if as_json:
        places = {name: str(file) for name, file in files.items()}
        write_json(examination.plain() | {"pictures": [str(picture) for picture in pictures], "report": places})
    else:
        typer.echo(examination_markdown(examination), nl=False)
        for picture in pictures:
            typer.echo(f"picture: {picture}")
        if files:
            typer.echo(f"page: {files['data.html']}")
    if examination.faults:
        raise typer.Exit(1)


@with_flags
def convert(
    data: NamedDataFlags, target: Target, split: OneSplit = None, fields: Fields = None, quiet: Quiet = False
) -> None:
    """Write DATA as a folder in longtail's own layout, or one part of it as a file."""
    from longtail.data.dataset import TEXT
    from longtail.data.load import load_dataset
    from longtail.data.write import write_dataset, write_split

    if target.is_file() and Path(data.data).exists() and target.samefile(data.data):
        raise DataError(f"{target} is what is converted, and must not be replaced; choose another target")
    screen = Screen(quiet)
    arguments = data.arguments()
    if fields:
        arguments["fields"] = [name.strip() for name in fields.split(",") if name.strip() != TEXT]
    dataset = load_dataset(**arguments, progress=screen.progress)
    if target.suffix and split is None and len(dataset.splits) > 1:
        raise DataError(
            f"a file holds one part, {dataset.name} has {', '.join(dataset.splits)}; choose one with --split"
        )
    with screen.progress.step("write"):
        if target.suffix:
            write_split(dataset.split(split or next(iter(dataset.splits))), target)
        else:
            write_dataset(dataset, target)
    screen.note(f"{target}: written")
