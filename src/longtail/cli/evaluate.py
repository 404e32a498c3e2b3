"""`longtail evaluate`: measure a model on texts whose labels are known."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from longtail.cli.flags import (
    DataFlags,
    EngineFlags,
    PrecisionFlags,
    TailWeight,
    option,
    threshold_of,
    with_flags,
)
from longtail.cli.screen import Screen, write_json
from longtail.errors import ConfigError
from longtail.units import in_seconds

if TYPE_CHECKING:
    from longtail.methods.base import Method
    from longtail.metrics import MetricOptions

EvaluatedSplit = Annotated[str | None, option("The part to evaluate on; by default dev.", "NAME", "--split")]
At = Annotated[str, option("List lengths k to measure at.", "NUMBERS", "--at")]
WithIntervals = Annotated[bool, option("95 % intervals, by bootstrap over the texts.", None, "--intervals")]
ReportFolder = Annotated[
    Path | None, option("Write report.html, report.md and report.json there.", "FOLDER", "--report")
]
Baseline = Annotated[
    bool,
    option(
        "In a report: train linear on the same texts and show it beside the model, where DATA has them.",
        None,
        "--baseline/--no-baseline",
    ),
]
DropSeen = Annotated[
    str | None,
    option("Also measure without the texts that occur word for word in the train part of DATA.", "DATA", "--drop-seen"),
]


@dataclass(frozen=True)
class MetricFlags:
    """What is measured."""

    at: At = "1,3,5"
    threshold: Annotated[
        str | None,
        option(
            "Also give micro-F1, its precision and recall, and macro-F1 of the labels that score as much; auto is the "
            "threshold that longtail predict knows by this name.",
            "SCORE",
        ),
    ] = None
    propensity: Annotated[
        list[str] | None,
        option(
            "Constants of PSP@k and PSnDCG@k; by default those of the model. May be repeated.", "A,B", "--propensity"
        ),
    ] = None

    def options(self, model: Method) -> MetricOptions:
        """Return what is measured of a model."""
        from longtail.metrics import MetricOptions

        constants = [_constants(pair) for pair in self.propensity] if self.propensity else None
        lowest = model.chain_.lowest_score(threshold_of(self.threshold))
        return MetricOptions.of({"at": list_lengths(self.at), "threshold": lowest, "propensities": constants})


@with_flags
def evaluate(
    model: PrecisionFlags,
    data: DataFlags,
    measured: MetricFlags,
    flags: EngineFlags,
    split: EvaluatedSplit = None,
    intervals: WithIntervals = False,
    report: ReportFolder = None,
    baseline: Baseline = True,
    drop_seen: DropSeen = None,
    tail_weight: TailWeight = None,
) -> None:
    """Measure a model on DATA; prints tables in per cent, or fractions as JSON."""
    from longtail.evaluation import as_trained, choose_split, evaluate_model, was_trained_on
    from longtail.metrics import BootstrapOptions
    from longtail.report import make_report, write_report
    from longtail.report.baseline import is_baseline, measure_baseline

    screen = flags.screen
    tagger = model.open(screen.progress, model.precision)
    dataset = data.load(tagger, screen.progress)
    name, texts = choose_split(tagger, dataset, split)
    if was_trained_on(tagger, texts):
        screen.warn(f"the model was trained on these very texts ({name}): the scores say nothing about new ones")
    metrics = measured.options(tagger)
    seen = None
    if drop_seen is not None:
        other = dataset if drop_seen == data.data else replace(data, data=drop_seen).load(tagger, screen.progress)
        seen = as_trained(tagger, other).train
    evaluation = evaluate_model(
        tagger,
        texts,
        metrics,
        bootstrap=BootstrapOptions() if intervals or report else None,
        seen=seen,
        tail_weight=tail_weight,
        run=flags.run,
    )
    beside = None
    if report is not None and baseline and not is_baseline(tagger):
        train = as_trained(tagger, dataset).splits.get("train")
        if train is not None and was_trained_on(tagger, train):
            beside = measure_baseline(train, evaluation, flags.run)
    contents = make_report(tagger, evaluation, dataset.name, name, model.model, baseline=beside)
    files = write_report(contents, report) if report is not None else {}
    if flags.as_json:
        about: dict[str, Any] = {"model": str(model.model), "method": tagger.name, "data": data.data, "split": name}
        about |= {"tail_weight": tagger.options.tail_weight if tail_weight is None else tail_weight}
        write_json(evaluation.plain() | about | {"report": {name: str(file) for name, file in files.items()}})
        return
    _show(screen, contents, evaluation.predict_s)
    if files:
        screen.console.print(f"report: {files['report.html']}", markup=False)


def list_lengths(at: str) -> list[int]:
    """Return the list lengths of --at without repetitions."""
    try:
        return list(dict.fromkeys(int(k) for k in at.split(",")))
    except ValueError as error:
        raise ConfigError(f"--at must be whole numbers such as 1,3,5, got '{at}'") from error


def _constants(pair: str) -> dict[str, float]:
    """Return the constants of --propensity."""
    try:
        a, b = map(float, pair.split(","))
    except ValueError as error:
        raise ConfigError(f"--propensity must be two numbers such as 0.55,1.5, got '{pair}'") from error
    return {"a": a, "b": b}


def _show(screen: Screen, report: dict[str, Any], predict_s: float) -> None:
    """Print the tables of a report."""
    from longtail.report.tables import band_table, list_lengths, new_table, overall_table, threshold_table

    results, data = report["results"], report["data"]
    per_text = 1000 * predict_s / max(data["n_texts"], 1)
    screen.headline(
        report["title"],
        f"{results['n_texts']:,} texts, {data['n_labels']:,} labels, in per cent; "
        f"predicted in {in_seconds(predict_s)} ({per_text:.2f} ms per text)",
    )
    roomy = len(list_lengths(results)) * (2 if "intervals" in results else 1) < 8
    screen.table(overall_table(results, explained=roomy))
    screen.table(band_table(results, intervals=False))
    for table in (threshold_table(results), new_table(results)):
        if table is not None:
            screen.table(table)
