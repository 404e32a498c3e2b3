"""`longtail data`: the data doctor, and data sets from one layout into another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from longtail.cli.flags import (
    Data,
    Format,
    Json,
    LabelColumn,
    LabelSeparator,
    Quiet,
    Read,
    TextColumn,
    VocabularyFile,
)
from longtail.cli.screen import Screen, write_json
from longtail.errors import DataError

Plots = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Draw label frequencies and text lengths there.")]
Target = Annotated[
    Path, typer.Argument(metavar="TARGET", help="A new folder, or a .jsonl, .csv, .tsv or .parquet file.")
]
OneSplit = Annotated[str | None, typer.Option("--split", metavar="NAME", help="The part to write into a file.")]
Fields = Annotated[str | None, typer.Option(metavar="NAMES", help="Columns of a table to keep, such as title,text.")]


def check(
    data: Data,
    plots: Plots = None,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Count, and look for what would break or worsen training; exits with 1 when something would break it."""
    from longtail.cli.source import load_data
    from longtail.data.doctor import examination_markdown, examine
    from longtail.data.plots import plot_examination

    screen = Screen(quiet)
    dataset = load_data(
        data,
        screen.progress,
        format=format,
        vocabulary=vocabulary,
        read=read,
        text_column=text_column,
        label_column=label_column,
        label_separator=label_separator,
    )
    found = examine(dataset, screen.progress)
    pictures = plot_examination(found, plots) if plots is not None else []
    if as_json:
        write_json(found.plain() | {"pictures": [str(picture) for picture in pictures]})
    else:
        typer.echo(examination_markdown(found), nl=False)
        for picture in pictures:
            typer.echo(f"picture: {picture}")
    if found.faults:
        raise typer.Exit(1)


def convert(
    data: Data,
    target: Target,
    split: OneSplit = None,
    fields: Fields = None,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    quiet: Quiet = False,
) -> None:
    """Write DATA as a folder in longtail's own layout, or one part of it as a file."""
    from longtail.cli.source import load_data
    from longtail.data.write import write_dataset, write_split

    screen = Screen(quiet)
    dataset = load_data(
        data,
        screen.progress,
        columns=[name.strip() for name in fields.split(",")] if fields else ["text"],
        format=format,
        vocabulary=vocabulary,
        read=read,
        text_column=text_column,
        label_column=label_column,
        label_separator=label_separator,
    )
    if not target.suffix:
        write_dataset(dataset, target)
    elif split is not None or len(dataset.splits) == 1:
        write_split(dataset.split(split or next(iter(dataset.splits))), target)
    else:
        raise DataError(
            f"a file holds one part, {dataset.name} has {', '.join(dataset.splits)}; choose one with --split"
        )
    screen.note(f"{target}: written")
