"""Arguments and options that several commands share, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA_PANEL = "How data are read"
RUN_PANEL = "How the command runs"

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="A folder, a file, or the name of a bundled data set (debtags).")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")]

Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The format, where files do not tell: folder, table, pecos, rawtext, xmc, svmlight, fasttext or xbert.",
        rich_help_panel=DATA_PANEL,
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column that holds the text.", rich_help_panel=DATA_PANEL)
]
LabelColumn = Annotated[
    str | None, typer.Option(metavar="NAME", help="The column that holds the labels.", rich_help_panel=DATA_PANEL)
]
LabelSeparator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What stands between two labels in a cell.", rich_help_panel=DATA_PANEL),
]
Read = Annotated[
    list[str] | None,
    typer.Option(
        metavar="OPTION=VALUE",
        help="Another option of the format (delimiter=|, on_bad_utf8=replace) or of the vocabulary "
        "(vocabulary.language=de, vocabulary.ids=notation). May be repeated.",
        rich_help_panel=DATA_PANEL,
    ),
]
VocabularyFile = Annotated[
    Path | None,
    typer.Option(
        "--vocabulary", metavar="FILE", help="Label names, tab-separated or SKOS.", rich_help_panel=DATA_PANEL
    ),
]

MethodName = Annotated[
    str,
    typer.Option("--method", "--preset", "-m", metavar="NAME", help="A method, or a preset of it (longtail methods)."),
]
Threads = Annotated[
    int | None, typer.Option(metavar="N", help="Threads to use; all cores by default.", rich_help_panel=RUN_PANEL)
]
PrecisionName = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="NAME",
        help="Numbers that a network reads texts with: fp32, as trained; bf16; int8, for CPUs. auto is bf16 on a GPU "
        "and fp32 on a CPU.",
        rich_help_panel=RUN_PANEL,
    ),
]
TailWeight = Annotated[
    float | None,
    typer.Option(
        "--tail-weight",
        metavar="T",
        help="Move rare labels up: scores are multiplied by a label's weight in PSP@k to the power T. 0 is none, 1 as "
        "much as PSP@k counts; by default as the model was trained.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes.", rich_help_panel=RUN_PANEL)]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.", rich_help_panel=RUN_PANEL)]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=VALUE", help="An option, such as ranker.threshold=0.05. May be repeated."),
]
