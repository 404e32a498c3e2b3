"""`longtail train`: a data set in, a model folder out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    TailWeight,
    TextColumn,
    Threads,
    VocabularyFile,
)
from longtail.cli.room import rows_of, shortage
from longtail.cli.screen import Screen, in_bytes, in_seconds, write_json
from longtail.errors import ConfigError, LongtailError

if TYPE_CHECKING:
    from longtail.data.dataset import Dataset, Split
    from longtail.methods.base import Method, Needs

Out = Annotated[
    Path,
    typer.Option("--out", "-o", metavar="MODEL", help="The model's folder; an older one is replaced at the very end."),
]
Config = Annotated[Path | None, typer.Option(metavar="FILE", help="Options in a TOML file (longtail config show).")]
Fields = Annotated[str | None, typer.Option(metavar="NAMES", help="Fields of a text to read, such as title,text.")]
TrainSplit = Annotated[str, typer.Option("--split", metavar="NAME", help="The part of the data to train on.")]
HoldOut = Annotated[
    bool, typer.Option("--hold-out", help="Keep a tenth of the texts (4,000 at most) out, for longtail evaluate.")
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Everything random is drawn from it.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on where a killed run was.", rich_help_panel=RUN_PANEL)]
Force = Annotated[bool, typer.Option("--force", help="Train even if it may not fit.", rich_help_panel=RUN_PANEL)]


def train(
    data: Data,
    out: Out,
    method: MethodName = "linear",
    config: Config = None,
    settings: Settings = None,
    fields: Fields = None,
    split: TrainSplit = "train",
    hold_out: HoldOut = False,
    seed: Seed = None,
    tail_weight: TailWeight = None,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    threads: Threads = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Train a model on DATA and save it."""
    from longtail.cli.source import choose_method, load_data
    from longtail.engines.local import LocalEngine
    from longtail.machine import free_memory_bytes
    from longtail.methods.base import MODEL
    from longtail.persist import check_replaceable

    screen = Screen(quiet)
    free_memory = free_memory_bytes()  # before the texts are in memory: what training needs counts them
    check_replaceable(out, MODEL)
    LocalEngine(threads)  # so that a wrong number is told before anything is read
    model = choose_method(method, config, settings, fields, seed)
    if tail_weight is not None:
        model.tail_weight = tail_weight
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
    if hold_out:
        dataset = _held_out(dataset, model.options.seed, screen)
    texts = dataset.split(split)
    needs = check_room(model, texts, out, free_memory, force, screen)
    start = time.perf_counter()
    fit_and_save(model, texts, _facts(dataset, data, split), out, threads, resume, screen)
    found = _outcome(model, out, time.perf_counter() - start, needs)
    if as_json:
        write_json(found)
    else:
        size, took = in_bytes(found["bytes"]), in_seconds(found["train_s"])
        typer.echo(f"{out}: {found['n_labels']:,} labels from {found['n_texts']:,} texts, {size}, trained in {took}")


def work_folder(out: Path) -> Path:
    """Where finished stages are kept while a model is trained."""
    return out.with_name(f"{out.name}.work")


def _held_out(dataset: Dataset, seed: int, screen: Screen) -> Dataset:
    made = dataset.hold_out(seed=seed)
    if made is dataset:
        screen.note(f"{dataset.name} has a dev part; nothing more is held out")
    else:
        screen.note(f"{len(made.dev):,} of {len(dataset.train):,} texts are held out as dev")
    return made


def _facts(dataset: Dataset, source: str, split: str) -> dict[str, Any]:
    held_out = dataset.facts.get("held_out")
    return {"name": dataset.name, "source": source, "split": split, **({"held_out": held_out} if held_out else {})}


def check_room(model: Method, texts: Split, out: Path, free_memory: int | None, force: bool, screen: Screen) -> Needs:
    """Say what training will take, and refuse where it is more than there is."""
    model.check(texts)
    with screen.progress.step("look at the texts"):
        needs = model.needs(texts)
    rows = rows_of(needs, out, free_memory)
    *others, last = map(str, rows)
    screen.note(f"training {model.name} on {len(texts):,} texts will take about {', '.join(others)} and {last}")
    short = shortage(needs, rows)
    if short and not force:
        raise ConfigError(f"{short}, or try all the same with --force")
    return needs


def fit_and_save(
    model: Method, texts: Split, facts: dict[str, Any], out: Path, threads: int | None, resume: bool, screen: Screen
) -> None:
    """Train and save a model; finished stages lie beside it until it stands.

    Of several processes that train it together, only the main one goes on from here.
    """
    from longtail.processes import is_main_process
    from longtail.stages import FolderStages

    work = work_folder(out)
    if work.exists() and not resume:
        screen.note(f"{work} of an unfinished run is cleared; --resume would have gone on with it")
    try:
        model.fit(texts, threads=threads, progress=screen.progress, work=work, resume=resume)
        if not is_main_process():
            raise typer.Exit
        model.facts_ |= facts
        with screen.progress.step("save"):
            model.save(out)
    except (KeyboardInterrupt, LongtailError):
        if work.exists():
            typer.echo(f"note: finished stages are kept in {work}; the same command with --resume goes on", err=True)
        raise
    FolderStages(work).close()


def _outcome(model: Method, out: Path, train_s: float, needs: Needs) -> dict[str, Any]:
    from longtail.report.contents import folder_bytes

    return {
        "model": str(out),
        "method": model.name,
        "n_texts": model.facts_["n_texts"],
        "n_labels": model.facts_["n_labels"],
        "n_labels_without_texts": model.facts_["n_labels_without_texts"],
        "bytes": folder_bytes(out),
        "train_s": train_s,
        "expected": {name: getattr(needs, name) for name in ("memory_bytes", "gpu_bytes", "disk_bytes")},
        "facts": model.facts_,
    }
