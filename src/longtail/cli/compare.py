"""`longtail compare`: train several methods on the same texts and show one table and one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.evaluate import At, list_lengths
from longtail.cli.flags import EngineFlags, Fields, Force, NamedDataFlags, in_flags, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError, did_you_mean
from longtail.tables import Table

if TYPE_CHECKING:
    from longtail.compare import Entry

USUAL_ANCHOR = "linear/parabel"
FAILED = 1
"""The exit code if a run failed."""

Methods = Annotated[
    str,
    option(
        "Methods and presets (longtail methods), such as linear,linear/parabel,knn. NAME=METHOD names one, so that a "
        "method can appear more than once.",
        "NAMES",
        "--methods",
        "-m",
    ),
]
RelativeTo = Annotated[
    str | None,
    option(
        "The method that gains are measured against; it is trained too if it is not among --methods. By default "
        "linear/parabel if it is among them, else the first.",
        "NAME",
        "--relative-to",
    ),
]
Out = Annotated[
    Path | None,
    option("Where models, table and page go; by default compared/ and DATA's name.", "FOLDER", "--out", "-o"),
]
Configs = Annotated[
    list[str] | None, option("Options of a method in a TOML file. May be repeated.", "NAME:FILE", "--config")
]
Settings = Annotated[
    list[str] | None, option("An option of a method, linear:n_seeds=3. May be repeated.", "NAME:OPTION=VALUE", "--set")
]
ComparedSplit = Annotated[
    str | None, option("The part to compare on; by default dev, or a tenth of train.", "NAME", "--split")
]
Seed = Annotated[int, option("The seed of all methods and of what is held out.", "N")]


@with_flags
def compare(
    data: NamedDataFlags,
    methods: Methods,
    flags: EngineFlags,
    relative_to: RelativeTo = None,
    out: Out = None,
    config: Configs = None,
    settings: Settings = None,
    fields: Fields = None,
    split: ComparedSplit = None,
    at: At = "1,3,5",
    seed: Seed = 0,
    force: Force = False,
) -> None:
    """Train several methods on the same texts and compare figures and costs; nothing is trained twice."""
    from longtail.compare import compare_methods

    run = flags.run
    with run.progress.step("load the methods"):
        entries = read_entries(methods, anchor=relative_to, config=config, settings=settings, fields=fields, seed=seed)
    names = [entry.name for entry in entries]
    figures, files = compare_methods(
        entries,
        data.arguments(),
        anchor=relative_to or (USUAL_ANCHOR if USUAL_ANCHOR in names else names[0]),
        out=out,
        split=split,
        at=list_lengths(at),
        seed=seed,
        force=force,
        run=run,
    )
    if flags.as_json:
        write_json(figures | {"files": {name: str(file) for name, file in files.items()}})
    else:
        _show(flags.screen, figures)
        flags.screen.console.print(f"page: {files['compare.html']}", markup=False, soft_wrap=True)
    if any(one["error"] is not None for one in figures["runs"]):
        raise typer.Exit(FAILED)


def read_entries(
    methods: str,
    *,
    anchor: str | None = None,
    config: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
    fields: str | None = None,
    seed: int = 0,
) -> list[Entry]:
    """Return the methods to compare, with their options; an anchor that is not among them comes behind them."""
    from longtail.compare import Entry
    from longtail.methods import create_method

    asked: dict[str, str] = {}
    for word in filter(None, (word.strip() for word in methods.split(","))):
        name, equals, method = (part.strip() for part in word.partition("="))
        if name in asked or (equals and not (name and method)):
            raise ConfigError(f"--methods must be different names, got '{word}'; NAME=METHOD gives one a name")
        asked[name] = method or name
    if not asked:
        raise ConfigError(f"--methods must name methods, such as linear,linear/parabel, got '{methods}'")
    if anchor is not None:
        asked.setdefault(anchor, anchor)
    files = _by_name(config, asked, "--config", "NAME:FILE")
    settings_of = _by_name(settings, asked, "--set", "NAME:option=value")
    for name, several in files.items():
        if len(several) > 1:
            raise ConfigError(f"--config must be given once a method, got {len(several)} files for '{name}'")
    return [
        Entry(
            name,
            create_method(
                method,
                config=files[name][0] if files[name] else None,
                settings=settings_of[name],
                fields=fields,
                seed=seed,
            ),
        )
        for name, method in asked.items()
    ]


def _by_name(values: Sequence[str] | None, known: dict[str, str], option: str, form: str) -> dict[str, list[str]]:
    """Return the values of `option` for each method, from NAME:VALUE."""
    by_name: dict[str, list[str]] = {name: [] for name in known}
    for one in values or ():
        name, colon, rest = (part.strip() for part in one.partition(":"))
        if not (colon and name and rest) or "=" in name:
            raise ConfigError(f"{option} must be {form}, with a name of --methods, got '{one}'")
        if name not in by_name:
            raise ConfigError(f"{option} is about '{name}', which is not among --methods{did_you_mean(name, known)}")
        by_name[name].append(rest)
    return by_name


def _show(screen: Screen, figures: dict[str, Any]) -> None:
    from longtail.report.comparison import comparison_table, legend, sentences
    from longtail.report.verdict import verdict

    data = figures["data"]
    screen.headline(
        f"{data['name']}, {data['split']}",
        f"{data['n_texts']:,} texts, {data['n_train_texts']:,} training texts, {data['n_labels']:,} labels",
    )
    for sentence in verdict(figures):
        screen.console.print(f"- {sentence}", markup=False, soft_wrap=True)
    whole = comparison_table(figures)
    for table in fit_table(whole, screen.console.width) if whole.rows else ():
        screen.table(table)
    for sentence in (*([legend(figures)] if whole.rows else []), *sentences(figures)):
        screen.console.print(in_flags(sentence), markup=False, soft_wrap=True)


def fit_table(table: Table, width: int) -> list[Table]:
    """Return the table if it fits into `width` characters, else blocks of its columns with intervals under values."""

    def needed(rows: list[list[str]], column: int) -> int:
        return max(len(line) for row in (table.head, *rows) for line in row[column].split("\n")) + 2

    rows = table.rows
    if sum(needed(rows, column) for column in range(len(table.head))) > width:
        rows = [[row[0], *(cell.replace(" (", "\n(") for cell in row[1:])] for row in rows]
    blocks: list[list[int]] = [[]]
    left = width - needed(rows, 0)
    for column in range(1, len(table.head)):
        if blocks[-1] and needed(rows, column) > left:
            blocks.append([])
            left = width - needed(rows, 0)
        blocks[-1].append(column)
        left -= needed(rows, column)
    return [
        Table(
            ["", *(table.head[column] for column in block)],
            [[row[0], *(row[column] for column in block)] for row in rows],
            frozenset((row, block.index(column) + 1) for row, column in table.best if column in block),
        )
        for block in blocks
    ]
