"""`longtail reproduce`: a paper's data and settings in, our figures beside the published ones out."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from longtail.cli.flags import RUN_PANEL, Format, Json, Quiet, Read, Settings, Threads
from longtail.cli.screen import Screen, in_seconds, write_json
from longtail.cli.train import Resume, check_room, fit_and_save
from longtail.errors import ConfigError, LongtailError, did_you_mean

if TYPE_CHECKING:
    from longtail.data.dataset import Split
    from longtail.evaluation import Evaluation
    from longtail.methods.base import Method
    from longtail.published import Published, Result
    from longtail.reproduce import Comparison

Preset = Annotated[
    str, typer.Argument(metavar="PRESET", help="A preset with published figures, such as linear/parabel.")
]
DataFolder = Annotated[str, typer.Argument(metavar="DATA_DIR", help="The folder of the data set, as it was released.")]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Where model, report and comparison go; by default reproduced/PRESET."
    ),
]
As = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="NAME", help="Which published data set it is, such as attentionxml/eurlex-4k; else counts tell."
    ),
]
PublishedFolder = Annotated[
    Path | None,
    typer.Option(
        "--published",
        metavar="FOLDER",
        help="Compare with datasets.toml and results.toml of this folder instead of those of the papers.",
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="A dry run with the first N texts of train and of test; 0 only checks the data."
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Go on though counts differ or it may not fit.", rich_help_panel=RUN_PANEL)
]


def reproduce(
    preset: Preset,
    data: DataFolder,
    out: Out = None,
    named: As = None,
    published: PublishedFolder = None,
    settings: Settings = None,
    limit: Limit = None,
    format: Format = None,
    read: Read = None,
    threads: Threads = None,
    resume: Resume = False,
    force: Force = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Check a paper's data, train with its settings, and put our figures on test beside the published ones."""
    from longtail.cli.source import choose_method, load_data
    from longtail.engines.local import LocalEngine
    from longtail.machine import free_memory_bytes
    from longtail.methods.base import MODEL
    from longtail.persist import check_replaceable
    from longtail.published import Published
    from longtail.report.contents import changed_options, environment
    from longtail.reproduce import check_counts, compare, find_data, need_same, plain_checks

    screen = Screen(quiet)
    free_memory = free_memory_bytes()
    papers = Published.load(published) if published is not None else Published.load()
    known = _known(papers, preset, named)
    out = out or Path("reproduced") / (preset.replace("/", "-") + ("" if limit is None else "-dry-run"))
    model = choose_method(preset, settings=settings)
    check_replaceable(out / "model", MODEL)
    LocalEngine(threads)
    dataset = load_data(
        data, screen.progress, columns=model.columns, optional=model.optional_columns, format=format, read=read
    )
    name = find_data(dataset, {name: papers.datasets[name] for name in known})
    checks = check_counts(dataset, papers.datasets[name])
    if not force:
        need_same(name, papers.datasets[name], checks, guessed=len(known) > 1)
    told: dict[str, Any] = {
        "preset": preset,
        "data": name,
        "changed_options": changed_options(model.options.plain(), choose_method(preset).options.plain()),
        "counts": plain_checks(checks),
        "limit": limit,
    }
    if limit == 0:
        if as_json:
            write_json(told)
        else:
            _show_counts(screen, told)
        return
    train, test = (_first(dataset.split(part), limit) for part in ("train", "test"))
    check_room(model, train, out, free_memory, force, screen)
    start = time.perf_counter()
    facts = {"name": name, "source": data, "split": "train"}
    fit_and_save(model, train, facts, out / "model", threads, resume, screen)
    told["train_s"] = time.perf_counter() - start
    found = _measure(model, test, name, known[name], out, threads, screen)
    comparisons = [compare(found.metrics.values, result, judged=limit is None) for result in known[name]]
    told |= {
        "n_texts": {"train": len(train), "test": len(test)},
        "metrics": found.metrics.values,
        "predict_s": found.predict_s,
        "environment": environment(),
        "results": [comparison.plain() for comparison in comparisons],
        "verdict": comparisons[0].verdict,
    }
    _write(told, out)
    if as_json:
        write_json(told)
    else:
        _show(screen, told, comparisons)
    for caveat in _caveats(told):
        screen.warn(caveat)


def _known(papers: Published, preset: str, named: str | None) -> dict[str, list[Result]]:
    """The results of the preset by data set; of one data set where it is named."""
    known = papers.of_preset(preset)
    if named is None:
        return known
    if named not in known:
        hint = did_you_mean(named, known) or f"; there are some on {', '.join(known)}"
        raise ConfigError(f"no published figures for '{preset}' on '{named}'{hint}")
    return {named: known[named]}


def _measure(
    model: Method, test: Split, name: str, results: list[Result], out: Path, threads: int | None, screen: Screen
) -> Evaluation:
    """Figures on test at all list lengths of the published ones; the full report goes to `out`."""
    from longtail.evaluation import evaluate_model
    from longtail.metrics import MetricOptions
    from longtail.propensity import propensities_of
    from longtail.report import make_report, write_report
    from longtail.reproduce import list_lengths

    constants = propensities_of(name.rpartition("/")[2])
    options = MetricOptions(at=list_lengths(results), propensities=constants)
    found = evaluate_model(model, test, options, threads=threads, progress=screen.progress)
    write_report(make_report(model, found, name, "test", out / "model"), out)
    return found


def _first(split: Split, limit: int | None) -> Split:
    import numpy as np

    return split if limit is None else split.take(np.arange(min(limit, len(split))))


def _write(told: dict[str, Any], out: Path) -> None:
    try:
        text = json.dumps(told, indent=1, ensure_ascii=False) + "\n"
        (out / "reproduced.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise LongtailError(f"cannot write to {out}: {error.strerror or error}") from error


def _show_counts(screen: Screen, told: dict[str, Any]) -> None:
    from longtail.report.tables import Table

    differ = _differences(told)
    screen.paper.print(f"[bold]{told['data']}[/bold]: {'counts differ' if differ else 'all counts agree'}")
    rows = [
        [count["what"], count["expected"], count["got"], "agrees" if count["agrees"] else "differs"]
        for count in told["counts"]
    ]
    screen.table(Table(["", "published", "here", ""], rows))


def _show(screen: Screen, told: dict[str, Any], comparisons: list[Comparison]) -> None:
    from longtail.report.tables import Table

    sizes = told["n_texts"]
    screen.paper.print(
        f"[bold]{told['preset']} on {told['data']}[/bold]: {sizes['train']:,} training texts, {sizes['test']:,} test "
        f"texts, in per cent; trained in {in_seconds(told['train_s'])}"
    )
    for comparison in comparisons:
        result = comparison.result
        note = f"; {result.note}" if result.note else ""
        screen.paper.print(f"published: {result.kind}; {result.source}{note}", markup=False, soft_wrap=True)
        rows = [
            [row.metric, f"{row.ours:.2f}", f"{row.published:.2f}", f"{row.difference:+.2f}", row.verdict or "–"]
            for row in comparison.rows
        ]
        screen.table(Table(["", "ours", "published", "difference", "verdict"], rows))
        screen.paper.print(comparison.sentence(), markup=False)


def _caveats(told: dict[str, Any]) -> list[str]:
    """Why the figures may not be comparable."""
    found = []
    if told["limit"] is not None:
        found.append(f"only the first {told['limit']:,} texts were used: the figures cannot be compared")
    if _differences(told):
        found.append(f"the data are not those of the paper: {'; '.join(_differences(told))}")
    if told["changed_options"]:
        found.append(f"options are not those of the preset: {', '.join(told['changed_options'])}")
    return found


def _differences(told: dict[str, Any]) -> list[str]:
    from longtail.reproduce import Check

    checks = [Check(**count) for count in told["counts"]]
    return [str(check) for check in checks if not check.agrees]
