"""`longtail tune`: choose options on held-out texts and write them to a file for `train --config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import EngineFlags, MethodFlags, NamedDataFlags, Resume, option, with_flags
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError
from longtail.tables import Table
from longtail.units import in_seconds

if TYPE_CHECKING:
    from longtail.tuning import Trial, Tuned

BestFile = Annotated[Path, option("Where the best options go, for train --config.", "FILE", "--out", "-o")]
Tries = Annotated[
    list[str] | None,
    option(
        "Values to try: training.rate=5e-5..2e-4:log, training.epochs=5,10. May be repeated; each method has a "
        "default.",
        "OPTION=VALUES",
        "--try",
    ),
]
Trials = Annotated[int, option("Number of trainings; the first uses the options as given.", "N", "--trials")]
Seconds = Annotated[float | None, option("Start no training that would end later than S seconds after the start.", "S")]


@with_flags
def tune(
    data: NamedDataFlags,
    out: BestFile,
    method: MethodFlags,
    flags: EngineFlags,
    tries: Tries = None,
    trials: Trials = 10,
    seconds: Seconds = None,
    resume: Resume = False,
) -> None:
    """Choose options on the dev part of DATA, or on a tenth of train; test is never used."""
    from longtail.files import write_text
    from longtail.run.stages import FolderStages
    from longtail.settings import options_toml
    from longtail.training import work_folder
    from longtail.tuning import default_space, read_space
    from longtail.tuning import tune as search

    run, screen = flags.run, flags.screen
    if out.is_dir():
        raise ConfigError(f"--out must be a file for options, such as best.toml, got the folder {out}")
    with run.progress.step("load the method"):
        model = method.create()
    space = read_space(tries) if tries else default_space(model.name)
    dataset = data.load(model, screen.progress)
    work = work_folder(out)
    tuned = search(
        model,
        dataset,
        space,
        n_trials=trials,
        seconds=seconds,
        run=run,
        work=work,
        resume=resume,
        watch=lambda trial: screen.note(_line(trial)),
    )
    text = options_toml(tuned.model.options, _title(tuned, dataset.name))
    write_text(out, text)
    FolderStages(work).close()
    if flags.as_json:
        write_json(_plain(tuned, out))
        return
    _show(screen, tuned)
    typer.echo(f"{out}: {_outcome(tuned)}; longtail train {data.data} --method {model.name} --config {out}")


def _line(trial: Trial) -> str:
    values = ", ".join(f"{path}={_short(value)}" for path, value in trial.values.items())
    outcome = f"failed: {trial.error}" if trial.score is None else f"nDCG@5 {100 * trial.score:.2f}"
    return f"trial {trial.number}: {outcome} in {in_seconds(trial.seconds)} with {values}"


def _title(tuned: Tuned, data: str) -> str:
    return (
        f"Options of {tuned.model.name} chosen on held-out texts of {data}: {_outcome(tuned)}, "
        f"the best of {len(tuned.trials)} trials."
    )


def _outcome(tuned: Tuned) -> str:
    first, best = tuned.trials[0], tuned.best
    before = "" if first.score is None or best is first else f" ({100 * first.score:.2f} with the options as given)"
    return f"nDCG@5 {100 * (best.score or 0):.2f}{before}"


def _show(screen: Screen, tuned: Tuned) -> None:
    paths = list(tuned.best.values)
    rows = [
        [
            f"{trial.number}{' best' if trial is tuned.best else ''}",
            *(_short(trial.values[path]) for path in paths),
            "failed" if trial.score is None else f"{100 * trial.score:.2f}",
            in_seconds(trial.seconds),
        ]
        for trial in tuned.trials
    ]
    screen.table(Table(["trial", *paths, "nDCG@5", "time"], rows))


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _plain(tuned: Tuned, out: Path) -> dict[str, Any]:
    from dataclasses import asdict

    return {"config": str(out), "best": asdict(tuned.best), "trials": [asdict(trial) for trial in tuned.trials]}
