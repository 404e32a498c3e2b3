"""`longtail tune`: options that suit the data, chosen on held-out texts, as a file that `train --config` reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import (
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
from longtail.cli.screen import Screen, in_seconds, write_json
from longtail.cli.train import Config, Fields, Resume, Seed, work_folder
from longtail.errors import ConfigError, LongtailError

if TYPE_CHECKING:
    from longtail.tuning import Trial, Tuned

BestFile = Annotated[
    Path, typer.Option("--out", "-o", metavar="FILE", help="Where the best options go, for train --config.")
]
Tries = Annotated[
    list[str] | None,
    typer.Option(
        "--try",
        metavar="OPTION=VALUES",
        help="What to try: training.rate=5e-5..2e-4:log, training.epochs=5,10. May be repeated; by default what is "
        "usually worth it for the method.",
    ),
]
Trials = Annotated[int, typer.Option("--trials", metavar="N", help="Trainings, the first with options as they are.")]
Seconds = Annotated[
    float | None, typer.Option(metavar="S", help="Begin no training that would end later than this after the start.")
]


def tune(
    data: Data,
    out: BestFile,
    method: MethodName = "linear",
    tries: Tries = None,
    trials: Trials = 10,
    seconds: Seconds = None,
    config: Config = None,
    settings: Settings = None,
    fields: Fields = None,
    seed: Seed = None,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    vocabulary: VocabularyFile = None,
    threads: Threads = None,
    resume: Resume = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Choose options on the dev part of DATA, or on a tenth of train; test is never looked at."""
    from longtail.cli.source import choose_method, load_data
    from longtail.engines.local import LocalEngine
    from longtail.settings import options_toml
    from longtail.stages import FolderStages
    from longtail.tuning import default_space, read_space
    from longtail.tuning import tune as search

    screen = Screen(quiet)
    LocalEngine(threads)
    if out.is_dir():
        raise ConfigError(f"--out must be a file for options, such as best.toml, got the folder {out}")
    model = choose_method(method, config, settings, fields, seed)
    space = read_space(tries) if tries else default_space(model.name)
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
    work = work_folder(out)
    try:
        found = search(
            model,
            dataset,
            space,
            n_trials=trials,
            seconds=seconds,
            threads=threads,
            progress=screen.progress,
            work=work,
            resume=resume,
            watch=lambda trial: screen.note(_line(trial)),
        )
    except (KeyboardInterrupt, LongtailError):
        if work.exists():
            typer.echo(f"note: finished trials are kept in {work}; the same command with --resume goes on", err=True)
        raise
    text = options_toml(found.model.options, _title(found, dataset.name))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LongtailError(f"cannot write {out}: {error.strerror or error}") from error
    FolderStages(work).close()
    if as_json:
        write_json(_plain(found, out))
        return
    _show(screen, found)
    typer.echo(f"{out}: {_outcome(found)}; longtail train {data} --method {model.name} --config {out}")


def _line(trial: Trial) -> str:
    values = ", ".join(f"{path}={_short(value)}" for path, value in trial.values.items())
    outcome = f"failed: {trial.error}" if trial.score is None else f"nDCG@5 {100 * trial.score:.2f}"
    return f"trial {trial.number}: {outcome} in {in_seconds(trial.seconds)} with {values}"


def _title(found: Tuned, data: str) -> str:
    return (
        f"Options of {found.model.name} chosen on held-out texts of {data}: {_outcome(found)}, "
        f"the best of {len(found.trials)} trials."
    )


def _outcome(found: Tuned) -> str:
    first, best = found.trials[0], found.best
    before = "" if first.score is None or best is first else f" ({100 * first.score:.2f} with options as they were)"
    return f"nDCG@5 {100 * (best.score or 0):.2f}{before}"


def _show(screen: Screen, found: Tuned) -> None:
    from longtail.report.tables import Table

    paths = list(found.best.values)
    rows = [
        [
            f"{trial.number}{' best' if trial is found.best else ''}",
            *(_short(trial.values[path]) for path in paths),
            "failed" if trial.score is None else f"{100 * trial.score:.2f}",
            in_seconds(trial.seconds),
        ]
        for trial in found.trials
    ]
    screen.table(Table(["trial", *paths, "nDCG@5", "time"], rows))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _plain(found: Tuned, out: Path) -> dict[str, Any]:
    from dataclasses import asdict

    return {"config": str(out), "best": asdict(found.best), "trials": [asdict(trial) for trial in found.trials]}
