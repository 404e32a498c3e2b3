"""`longtail reproduce`: train with a paper's data and settings and compare with the published figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longtail.cli.flags import Format, Read, Resume, RunFlags, Settings, option, run_option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.tables import Table
from longtail.units import in_seconds

if TYPE_CHECKING:
    from longtail.published import PublishedTable, Row
    from longtail.reproduce import Reproduction

Preset = Annotated[
    str, typer.Argument(metavar="PRESET", help="A preset with published figures, such as linear/parabel.")
]
DataFolder = Annotated[str, typer.Argument(metavar="DATA_DIR", help="The folder of the data set, as it was released.")]
Out = Annotated[
    Path | None, option("Where model, report and comparison go; by default reproduced/PRESET.", "FOLDER", "--out", "-o")
]
As = Annotated[
    str | None,
    option("Which published data set it is, such as attentionxml/eurlex-4k; by default counts decide.", "NAME", "--as"),
]
RowName = Annotated[
    str | None, option("The row of a table of ablations, such as 6 or BS: its options, its figures.", "NAME", "--row")
]
PublishedFolder = Annotated[
    Path | None,
    option(
        "Compare with datasets.toml and results.toml of this folder instead of those of the papers.",
        "FOLDER",
        "--published",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="A dry run with the first N texts of train and of test; 0 only checks the data."
    ),
]
Force = Annotated[bool, run_option("Continue even if counts differ or it may not fit.", None, "--force")]


def _show_all(wanted: bool) -> None:
    """Show every published table, with what `reproduce` takes for each row, and end."""
    if not wanted:
        return
    from longtail.published import Published

    screen = Screen()
    for table in Published.load().tables:
        rows = [[*_cells(table, row), _command(row)] for row in table.rows]
        screen.table(Table([*_head(table), "reproduce"], rows), f"{table.source}: {table.data or 'data not named'}")
    raise typer.Exit


List = Annotated[
    bool,
    typer.Option(
        "--list",
        callback=_show_all,
        is_eager=True,
        help="Show every published table with the preset and settings of each row, and end.",
    ),
]


@with_flags
def reproduce(
    preset: Preset,
    data: DataFolder,
    flags: RunFlags,
    out: Out = None,
    named: As = None,
    published: PublishedFolder = None,
    row: RowName = None,
    settings: Settings = None,
    limit: Limit = None,
    format: Format = None,
    read: Read = None,
    resume: Resume = False,
    force: Force = False,
    list_all: List = False,
) -> None:
    """Check a paper's data, train with its settings, and compare our figures on test with the published ones."""
    from longtail.published import Published
    from longtail.reproduce import reproduce as reproduce_preset
    from longtail.settings import with_settings

    reproduction = reproduce_preset(
        preset,
        {"source": data, "format": format, **with_settings({}, read or ())},
        out=out,
        named=named,
        published=Published.load(published) if published is not None else None,
        row=row,
        settings=settings or (),
        limit=limit,
        resume=resume,
        force=force,
        run=flags.run,
    )
    if flags.as_json:
        write_json(reproduction.outcome)
    elif limit == 0:
        _show_counts(flags.screen, reproduction)
    else:
        _show(flags.screen, reproduction)
    for caveat in reproduction.caveats() if limit != 0 else ():
        flags.screen.warn(caveat)


def _show_counts(screen: Screen, reproduction: Reproduction) -> None:
    checks = reproduction.checks
    verdict = "all counts agree" if all(check.agrees for check in checks) else "counts differ"
    screen.headline(reproduction.outcome["data"], verdict)
    rows = [[check.what, check.expected, check.got, "agrees" if check.agrees else "differs"] for check in checks]
    screen.table(Table(["", "published", "here", ""], rows))


def _show(screen: Screen, reproduction: Reproduction) -> None:
    outcome, comparisons = reproduction.outcome, reproduction.comparisons
    sizes = outcome["n_texts"]
    screen.headline(
        f"{outcome['preset']} on {outcome['data']}",
        f"{sizes['train']:,} training texts, {sizes['test']:,} test texts, in per cent; "
        f"trained in {in_seconds(outcome['train_s'])}",
    )
    for comparison in comparisons:
        result = comparison.result
        note = f"; {result.note}" if result.note else ""
        screen.console.print(f"published: {result.kind}; {result.source}{note}", markup=False, soft_wrap=True)
        rows = [
            [row.metric, f"{row.ours:.2f}", f"{row.published:.2f}", f"{row.difference:+.2f}", row.verdict or "–"]
            for row in comparison.rows
        ]
        screen.table(Table(["", "ours", "published", "difference", "verdict"], rows))
        screen.console.print(comparison.sentence(), markup=False)
    for table in reproduction.tables:
        if comparisons[0].result.source.startswith(f"{table.source}, "):
            screen.table(_beside(table, outcome["preset"], outcome["metrics"]), f"{table.source}, all systems")


def _beside(table: PublishedTable, preset: str, metrics: dict[str, float]) -> Table:
    """Return a published table with a last row for this run, where the figures are metrics and not gains or costs."""
    rows = [_cells(table, row) for row in table.rows]
    if not table.over and all(name in metrics for name in table.columns):
        rows.append([f"{preset}, this run", *(f"{100 * metrics[name]:.2f}" for name in table.columns)])
    return Table(_head(table), rows)


def _head(table: PublishedTable) -> list[str]:
    return ["system", *(f"{name} gain" if table.over else name for name in table.columns)]


def _cells(table: PublishedTable, row: Row) -> list[str]:
    form = "+.2f" if table.over else ".2f"
    return [row.system, *("–" if isinstance(figure, str) else f"{figure:{form}}" for figure in row.figures)]


def _command(row: Row) -> str:
    """Return the arguments that reproduce a row; `quoted` where nothing does."""
    return "quoted" if not row.preset else f"{row.preset} --row {row.name}" if row.settings else row.preset
