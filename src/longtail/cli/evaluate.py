"""`longtail evaluate`: how good a model is on texts whose labels are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from longtail.cli.flags import (
    Data,
    Format,
    Json,
    LabelColumn,
    LabelSeparator,
    Model,
    PrecisionName,
    Quiet,
    Read,
    TailWeight,
    TextColumn,
    Threads,
)
from longtail.cli.screen import Screen, in_seconds, write_json
from longtail.errors import ConfigError

if TYPE_CHECKING:
    from longtail.metrics import MetricOptions

EvaluatedSplit = Annotated[
    str | None, typer.Option("--split", metavar="NAME", help="The part to evaluate on; by default dev.")
]
At = Annotated[str, typer.Option("--at", metavar="NUMBERS", help="List lengths k to measure at.")]
With = Annotated[bool, typer.Option("--intervals", help="95 % intervals, by bootstrap over the texts.")]
ReportFolder = Annotated[
    Path | None, typer.Option("--report", metavar="FOLDER", help="Write report.html, report.md and report.json there.")
]
DropSeen = Annotated[
    str | None,
    typer.Option(
        "--drop-seen",
        metavar="DATA",
        help="Also measure without the texts that occur word for word in the train part of DATA.",
    ),
]
ScoreThreshold = Annotated[
    float | None, typer.Option(metavar="SCORE", help="Also give micro- and macro-F1 of the labels that score as much.")
]


def evaluate(
    model: Model,
    data: Data,
    split: EvaluatedSplit = None,
    at: At = "1,3,5",
    threshold: ScoreThreshold = None,
    intervals: With = False,
    report: ReportFolder = None,
    drop_seen: DropSeen = None,
    tail_weight: TailWeight = None,
    format: Format = None,
    text_column: TextColumn = None,
    label_column: LabelColumn = None,
    label_separator: LabelSeparator = None,
    read: Read = None,
    threads: Threads = None,
    precision: PrecisionName = "auto",
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Measure a model on DATA; prints fractions as JSON, or tables in per cent."""
    from longtail.cli.source import load_data
    from longtail.evaluation import as_trained, choose_split, evaluate_model
    from longtail.methods import load_model
    from longtail.metrics import BootstrapOptions
    from longtail.report import make_report, write_report

    screen = Screen(quiet)
    tagger = load_model(model, precision=cast(Any, precision))
    if tail_weight is not None:
        tagger.tail_weight = tail_weight
    how: dict[str, Any] = {
        "columns": tagger.columns,
        "optional": tagger.optional_columns,
        "format": format,
        "read": read,
        "text_column": text_column,
        "label_column": label_column,
        "label_separator": label_separator,
    }
    dataset = load_data(data, screen.progress, **how)
    name, texts = choose_split(tagger, dataset, split)
    if texts.fingerprint == tagger.facts_["fingerprint"]:
        screen.warn(f"the model was trained on these very texts ({name}): the scores say nothing about new ones")
    seen = None
    if drop_seen is not None:
        other = dataset if drop_seen == data else load_data(drop_seen, screen.progress, **how)
        seen = as_trained(tagger, other).train
    found = evaluate_model(
        tagger,
        texts,
        metric_options(at, threshold, dataset.name),
        bootstrap=BootstrapOptions() if intervals or report else None,
        seen=seen,
        threads=threads,
        progress=screen.progress,
    )
    made = make_report(tagger, found, dataset.name, name, model)
    files = write_report(made, report) if report is not None else {}
    if as_json:
        about: dict[str, Any] = {"model": str(model), "method": tagger.name, "data": data, "split": name}
        about |= {"tail_weight": tagger.tail_weight}
        write_json(found.plain() | about | {"report": {name: str(file) for name, file in files.items()}})
        return
    _show(screen, made, found.predict_s)
    if files:
        screen.paper.print(f"report: {files['report.html']}")


def metric_options(at: str, threshold: float | None, data: str) -> MetricOptions:
    """What to measure on a data set: list lengths as people write them."""
    from longtail.metrics import MetricOptions
    from longtail.propensity import propensities_of

    try:
        lengths = [int(k) for k in at.split(",")]
    except ValueError as error:
        raise ConfigError(f"--at must be whole numbers such as 1,3,5, got '{at}'") from error
    values = {"at": list(dict.fromkeys(lengths)), "threshold": threshold}
    return MetricOptions.of(values).model_copy(update={"propensities": propensities_of(data)})


def _show(screen: Screen, made: dict[str, Any], predict_s: float) -> None:
    from longtail.report.tables import band_table, list_lengths, new_table, overall_table

    results, data = made["results"], made["data"]
    per_text = 1000 * predict_s / max(data["n_texts"], 1)
    screen.paper.print(
        f"[bold]{made['title']}[/bold]: {results['n_texts']:,} texts, {data['n_labels']:,} labels, in per cent; "
        f"predicted in {in_seconds(predict_s)} ({per_text:.2f} ms a text)"
    )
    roomy = len(list_lengths(results)) * (2 if "intervals" in results else 1) < 8
    screen.table(overall_table(results, explained=roomy))
    screen.table(band_table(results, intervals=False))
    new = new_table(results)
    if new is not None:
        screen.table(new)
    if "micro-F1" in results["metrics"]:
        found = {name: f"{100 * results['metrics'][name]:.1f}" for name in ("micro-F1", "macro-F1")}
        screen.paper.print(", ".join(f"{name} at the threshold {value}" for name, value in found.items()))
