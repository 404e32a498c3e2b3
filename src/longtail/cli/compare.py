"""`longtail compare`: several methods on the same texts, one table and one page."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.evaluate import At, metric_options
from longtail.cli.flags import (
    RUN_PANEL,
    Data,
    Format,
    Json,
    LabelColumn,
    LabelSeparator,
    Quiet,
    Read,
    TextColumn,
    Threads,
    VocabularyFile,
)
from longtail.cli.screen import Screen, in_seconds, write_json
from longtail.cli.train import Fields
from longtail.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from longtail.compare import Entry, Found, RunFolder
    from longtail.report.tables import Table

USUAL_ANCHOR = "linear/parabel"
FAILED = 1
"""The exit code where a run failed."""

Methods = Annotated[
    str,
    typer.Option(
        "--methods",
        "-m",
        metavar="NAMES",
        help="Methods and presets (longtail methods), such as linear,linear/parabel,knn. NAME=METHOD gives one a name "
        "of your own, so that it can be there more than once.",
    ),
]
RelativeTo = Annotated[
    str | None,
    typer.Option(
        "--relative-to",
        metavar="NAME",
        help="The one that gains are told over, trained too if it is not among them; by default linear/parabel where "
        "that is among them, else the first.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Where models, table and page go; by default compared/ and DATA's name."
    ),
]
Configs = Annotated[
    list[str] | None,
    typer.Option("--config", metavar="NAME:FILE", help="Options of a method in a TOML file. May be repeated."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME:OPTION=VALUE", help="An option of a method, linear:n_seeds=3. May be repeated."
    ),
]
ComparedSplit = Annotated[
    str | None,
    typer.Option("--split", metavar="NAME", help="The part to compare on; by default dev, or a tenth of train."),
]
Seed = Annotated[int, typer.Option(metavar="N", help="What is held out and all methods draw from it.")]
Force = Annotated[bool, typer.Option("--force", help="Train even if it may not fit.", rich_help_panel=RUN_PANEL)]


def compare(
    data: Data,
    methods: Methods,
    relative_to: RelativeTo = None,
    out: Out = None,
    config: Configs = None,
    settings: Settings = None,
    fields: Fields = None,
    split: ComparedSplit = None,
    at: At = "1,3,5",
    seed: Seed = 0,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    threads: Threads = None,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train several methods on the same texts and lay figures and costs side by side; nothing is trained twice."""
    from longtail.cli.source import load_data
    from longtail.compare import RunFolder, belongs_to, choose_parts, make_comparison
    from longtail.engines.local import LocalEngine
    from longtail.evaluation import list_length
    from longtail.report import write_comparison

    screen = Screen(quiet)
    LocalEngine(threads)
    entries = read_entries(methods, relative_to, config, settings, fields, seed)
    names = [entry.name for entry in entries]
    anchor = relative_to or (USUAL_ANCHOR if USUAL_ANCHOR in names else names[0])
    how: dict[str, Any] = {
        "format": format,
        "vocabulary": str(vocabulary) if vocabulary else None,
        "read": read,
        "text_column": text_column,
        "label_column": label_column,
        "label_separator": label_separator,
    }
    columns = dict.fromkeys(column for entry in entries for column in entry.model.columns)
    optional = dict.fromkeys(column for entry in entries for column in entry.model.optional_columns)
    dataset = load_data(
        data, screen.progress, columns=tuple(columns), optional=tuple(optional), **how | {"vocabulary": vocabulary}
    )
    options = metric_options(at, None, dataset.name)
    dataset, name, evaluated = choose_parts(dataset, split, seed)
    for entry in entries:
        entry.model.check(dataset.train)
    place = (out or Path("compared") / dataset.name).absolute()
    belongs_to(place, dataset.train)
    folders = {entry.name: RunFolder(place, entry.model, dataset.train, evaluated) for entry in entries}
    job = {
        "data": str(Path(data).absolute()) if Path(data).exists() else data,
        "how": how,
        "split": split,
        "seed": seed,
        "out": str(place),
        "k": list_length(options),
        "threads": threads,
        "force": force,
    }
    found = _run_all(entries, folders, job, screen)
    parts = dataset, name, evaluated, entries, found, anchor, options
    models = {entry: folder.model for entry, folder in folders.items()}
    made = make_comparison(*parts, folders=models, progress=screen.progress)
    files = write_comparison(made, place)
    if as_json:
        write_json(made | {"files": {name: str(file) for name, file in files.items()}})
    else:
        _show(screen, made)
        screen.paper.print(f"page: {files['compare.html']}", soft_wrap=True)
    if any(isinstance(one, str) for one in found.values()):
        raise typer.Exit(FAILED)


def read_entries(
    methods: str,
    anchor: str | None,
    config: Sequence[str] | None,
    settings: Sequence[str] | None,
    fields: str | None,
    seed: int,
) -> list[Entry]:
    """The methods to compare, with their options; an anchor that is not among them comes behind them."""
    from longtail.cli.source import choose_method
    from longtail.compare import Entry

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
    own = _by_name(settings, asked, "--set", "NAME:option=value")
    for name, several in files.items():
        if len(several) > 1:
            raise ConfigError(f"--config must be given once a method, got {len(several)} files for '{name}'")
    entries = []
    for name, method in asked.items():
        file = Path(files[name][0]) if files[name] else None
        entries.append(Entry(name, choose_method(method, file, own[name], fields, seed)))
    return entries


def _by_name(given: Sequence[str] | None, known: dict[str, str], option: str, form: str) -> dict[str, list[str]]:
    """What an option says of each method."""
    found: dict[str, list[str]] = {name: [] for name in known}
    for one in given or ():
        name, colon, rest = (part.strip() for part in one.partition(":"))
        if not (colon and name and rest) or "=" in name:
            raise ConfigError(f"{option} must be {form}, with a name of --methods, got '{one}'")
        if name not in found:
            raise ConfigError(f"{option} is about '{name}', which is not among --methods{did_you_mean(name, known)}")
        found[name].append(rest)
    return found


def _run_all(
    entries: Sequence[Entry], folders: dict[str, RunFolder], job: dict[str, Any], screen: Screen
) -> dict[str, Found | str]:
    """What each run left, or why it failed; those that are done are not done again."""
    from longtail.cli.alone import COMMAND
    from longtail.engines.apart import run_apart

    found: dict[str, Found | str] = {}

    def say(level: int, text: str) -> None:
        if level >= logging.WARNING:
            screen.warn(text)

    with screen.progress.step("compare", len(entries), "methods") as advance:
        for number, (name, model) in enumerate(entries, 1):
            run = folders[name]
            done = run.found(job["k"])
            if done is None:
                screen.note(f"{number} of {len(entries)}: {name}{', trained before' if run.costs() else ''}")
                run.path.mkdir(parents=True, exist_ok=True)
                own = job | {"method": model.name, "options": model.options.plain()}
                ended = run_apart(COMMAND, own, screen.progress, say, run.log)
                done = run.found(job["k"])
                if done is None:
                    found[name] = ended.error or "it left nothing behind"
                    screen.warn(f"{name} failed: {found[name]}")
                else:
                    screen.note(f"{name}: trained in {in_seconds(done.costs.train_s)}")
            else:
                screen.note(f"{number} of {len(entries)}: {name}, done before")
            if done is not None:
                found[name] = done
            advance(1)
    return found


def _show(screen: Screen, made: dict[str, Any]) -> None:
    from longtail.report.comparison import comparison_table, legend, sentences

    data = made["data"]
    screen.paper.print(
        f"[bold]{data['name']}[/bold], {data['split']}: {data['n_texts']:,} texts, {data['n_train_texts']:,} training "
        f"texts, {data['n_labels']:,} labels"
    )
    whole = comparison_table(made)
    for table in _fitted(whole, screen.paper.width) if whole.rows else ():
        screen.table(table)
    for told in (*([legend(made)] if whole.rows else []), *sentences(made)):
        screen.paper.print(told, markup=False, soft_wrap=True)


def _fitted(table: Table, width: int) -> list[Table]:
    """The table where it fits; else with intervals under their values, and in blocks of methods."""
    from longtail.report.tables import Table

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
