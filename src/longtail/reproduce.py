"""Reproduce a paper's figures: check that the data are the same, train, and compare.

    preset, arguments of load_dataset  ->  reproduce     ->  Reproduction: counts, metrics, Comparisons, caveats
    Dataset, DataCounts                ->  check_counts  ->  one Check per count: what, expected, got
    metrics of a run, Result           ->  compare       ->  Comparison: one row per figure, and a verdict

A figure `agrees` if the difference is at most the tolerance of the published result; otherwise it is `above` or
`below`. A comparison is `below` if any figure is, `above` if some are and none is below, otherwise it `agrees`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from longtail.data.dataset import Dataset, Split
from longtail.errors import ConfigError, DataError, did_you_mean
from longtail.evaluation import evaluate_model
from longtail.methods import create_method
from longtail.methods.base import MODEL
from longtail.metrics import MetricOptions
from longtail.persist import check_replaceable
from longtail.plan import check_resources
from longtail.published import DataCounts, Published, PublishedTable, Result
from longtail.report import make_report, write_files, write_report
from longtail.report.contents import changed_options, environment
from longtail.run.resources import free_memory_bytes
from longtail.run.run import Run
from longtail.training import fit_and_save, load_for

Verdict = Literal["agrees", "above", "below"]

MEANS_DIFFER = 0.02
"""Means may differ by this share: papers round them, and not all say which part they are taken over."""
_PARTS = {"train": "training texts", "dev": "dev texts", "test": "test texts"}


@dataclass(frozen=True)
class Check:
    """A count of the data and the published one, as text."""

    what: str
    expected: str
    got: str
    agrees: bool

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.got}"


class FigureRow(NamedTuple):
    """One figure in per cent."""

    metric: str
    ours: float
    published: float
    difference: float
    """Ours minus the published one, rounded as shown: the verdict is about the shown number."""
    verdict: Verdict | None
    """None if the run is not to be compared."""


@dataclass(frozen=True)
class Comparison:
    """The figures of a run and of a published result."""

    result: Result
    rows: tuple[FigureRow, ...]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict over all figures; None if the run is not to be compared."""
        verdicts = {row.verdict for row in self.rows}
        if None in verdicts:
            return None
        return "below" if "below" in verdicts else "above" if "above" in verdicts else "agrees"

    def sentence(self) -> str:
        """Return the verdict with its reason."""
        most = f"{self.result.tolerance:g}"
        if self.verdict is None:
            return "no verdict: the texts are not all those of the paper"
        if self.verdict == "agrees":
            return f"agrees: no figure differs by more than {most}"
        names = ", ".join(row.metric for row in self.rows if row.verdict == self.verdict)
        return f"{self.verdict}: {names} by more than {most}"

    def plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {**self.result.plain(), "rows": [row._asdict() for row in self.rows], "verdict": self.verdict}


@dataclass(frozen=True)
class Reproduction:
    """A run with the settings and data of a paper."""

    outcome: dict[str, Any]
    """Preset, data, counts, and, unless only the data were checked, metrics, costs and results as plain data."""
    checks: tuple[Check, ...]
    comparisons: tuple[Comparison, ...] = ()
    tables: tuple[PublishedTable, ...] = ()
    """All published tables about the data."""

    def caveats(self) -> list[str]:
        """Return why the figures may not be comparable."""
        reasons = []
        if self.outcome["limit"] is not None:
            reasons.append(f"only the first {self.outcome['limit']:,} texts were used: the figures cannot be compared")
        differences = [str(check) for check in self.checks if not check.agrees]
        if differences:
            reasons.append(f"the data are not those of the paper: {'; '.join(differences)}")
        if self.outcome["changed_options"]:
            reasons.append(f"options are not those of the preset: {', '.join(self.outcome['changed_options'])}")
        return reasons


def reproduce(
    preset: str,
    data: Mapping[str, Any],
    *,
    out: Path | None = None,
    named: str | None = None,
    published: Published | None = None,
    row: str | None = None,
    settings: Sequence[str] = (),
    limit: int | None = None,
    resume: bool = False,
    force: bool = False,
    run: Run | None = None,
) -> Reproduction:
    """Check the data of a paper, train with its settings, and compare our figures on test with the published ones.

    Args:
        preset: A preset with published figures, such as `linear/parabel`.
        data: Arguments of `load_dataset` by name.
        out: Where model, report and reproduced.json go; by default `reproduced/PRESET`.
        named: The published data set that this is; by default the one whose counts come nearest.
        published: The published figures; by default those that come with longtail.
        row: The row of a table of ablations: its options are taken, and its figures are compared with.
        settings: Options to change, as `path=value`.
        limit: Use only the first texts of train and test; 0 only checks the data.
        resume: Use the stages that an unfinished training left.
        force: Go on though counts differ or training may not fit.
        run: How the run is carried out.
    """
    run, free_memory = run or Run(), free_memory_bytes()
    papers = published or Published.load()
    known = _results_of(papers, preset, named)
    folder = [preset.replace("/", "-"), *([f"row-{row}"] if row else []), *(["dry-run"] if limit is not None else [])]
    out = out or Path("reproduced") / "-".join(folder)
    of_row = _settings_of(known, preset, row)
    model = create_method(preset, settings=[*of_row, *settings])
    check_replaceable(out / "model", MODEL)
    dataset = load_for(model, data, run.progress)
    name = find_data(dataset, {name: papers.datasets[name] for name in known})
    checks = check_counts(dataset, papers.datasets[name])
    if not force:
        need_same(name, papers.datasets[name], checks, guessed=len(known) > 1)
    results = [result for result in known[name] if result.settings == of_row] or known[name]
    usual = create_method(preset, settings=of_row).options.plain()
    outcome: dict[str, Any] = {
        "preset": preset,
        "data": name,
        "row": row,
        "changed_options": changed_options(model.options.plain(), usual),
        "counts": [asdict(check) for check in checks],
        "limit": limit,
    }
    if limit == 0:
        return Reproduction(outcome, checks)
    constants = papers.datasets[name].propensities
    # Published systems learn from all training texts.
    model = model.from_options(model.options.plain() | {"propensity": constants[0].plain(), "calibrate": False})
    train, test = (_first(dataset.split(part), limit) for part in ("train", "test"))
    check_resources(model, train, out, free_memory=free_memory, force=force, run=run)
    start = time.perf_counter()
    facts = {"name": name, "source": data["source"], "split": "train"}
    fit_and_save(model, train, out / "model", facts=facts, resume=resume, run=run)
    train_s = time.perf_counter() - start
    options = MetricOptions(at=list_lengths(results), propensities=constants)
    evaluation = evaluate_model(model, test, options, run=run)
    is_foreign = not all(check.agrees for check in checks)
    judged = limit is None and not is_foreign
    comparisons = [compare(evaluation.metrics.values, result, judged=judged) for result in results]
    title = f"{dataset.name}, which is not {name}" if is_foreign else name
    title += f" (dry run with {limit:,} texts)" if limit is not None else ""
    contents = make_report(model, evaluation, title, "test", out / "model")
    contents["caveats"] = Reproduction(outcome, checks).caveats()
    contents["published"] = [(row.metric, row.ours, row.published) for row in comparisons[0].rows]
    write_report(contents, out)
    tables = papers.of_data(name)
    outcome |= {
        "train_s": train_s,
        "n_texts": {"train": len(train), "test": len(test)},
        "metrics": evaluation.metrics.values,
        "predict_s": evaluation.predict_s,
        "environment": environment(),
        "results": [comparison.plain() for comparison in comparisons],
        "verdict": comparisons[0].verdict,
        "tables": [table.plain() for table in tables],
    }
    write_files(out, {"reproduced.json": json.dumps(outcome, indent=1, ensure_ascii=False) + "\n"})
    return Reproduction(outcome, checks, tuple(comparisons), tuple(tables))


def check_counts(dataset: Dataset, expected: DataCounts) -> tuple[Check, ...]:
    """Return one check per published count."""
    sizes = {part: len(dataset.splits[part]) if part in dataset.splits else 0 for part in _PARTS}
    wanted = {"train": expected.n_train, "dev": expected.n_dev, "test": expected.n_test}
    checks = [_exact(_PARTS[part], wanted[part], sizes[part]) for part in _PARTS if wanted[part]]
    labels, n_labels = _labels(_label_counts(dataset), expected)
    checks.append(labels)
    n_assignments = len(dataset.splits["train"].labels.indices) if sizes["train"] else 0
    checks.append(_mean("labels per text", expected.labels_per_text, n_assignments / max(sizes["train"], 1)))
    if expected.texts_per_label is not None:
        checks.append(_mean("texts per label", expected.texts_per_label, n_assignments / max(n_labels, 1)))
    features = dataset.splits["train"].features if sizes["train"] else None
    if expected.n_features is not None and features is not None:
        checks.append(_exact("features", expected.n_features, features.shape[1]))
    return tuple(checks)


def find_data(dataset: Dataset, known: Mapping[str, DataCounts]) -> str:
    """Return the name of the published data set whose counts come nearest."""

    def distance(name: str) -> tuple[int, float]:
        n_wrong = sum(not check.agrees for check in check_counts(dataset, known[name]))
        n_train = len(dataset.splits["train"]) if "train" in dataset.splits else 0
        return n_wrong, abs(math.log(max(n_train, 1) / known[name].n_train))

    return min(known, key=distance)


def need_same(name: str, expected: DataCounts, checks: Iterable[Check], guessed: bool = False) -> None:
    """Raise if the data are not those of the paper; `guessed` says that only the counts named the data set."""
    wrong = "; ".join(str(check) for check in checks if not check.agrees)
    if wrong:
        fault = "the data only come near" if guessed else "the data are not"
        other = ", or name the data set with `named`" if guessed else ""
        raise DataError(f"{fault} {name} ({expected.title}): {wrong}; go on all the same with `force`{other}")


def list_lengths(results: Iterable[Result]) -> tuple[int, ...]:
    """Return the k of all figures in results, in rising order."""
    return tuple(sorted({int(name.partition("@")[2]) for result in results for name in result.metrics}))


def compare(metrics: Mapping[str, float], result: Result, judged: bool = True) -> Comparison:
    """Compare the figures of a run (fractions) with the published ones (per cent); without verdicts unless `judged`.

    If the published figures are gains over a base, so are ours, and the tolerance is that share of the base.
    """
    rows = []
    for name, published in result.metrics.items():
        ours, tolerance = 100 * metrics[name], result.tolerance
        if result.base:
            ours, tolerance = 100 * (ours / result.base[name] - 1), 100 * tolerance / result.base[name]
        difference = round(ours - published, 2)
        verdict = _verdict(difference, tolerance) if judged else None
        rows.append(FigureRow(name, ours, published, difference, verdict))
    return Comparison(result, tuple(rows))


def _results_of(papers: Published, preset: str, named: str | None) -> dict[str, list[Result]]:
    """Return the results of the preset by data set, or only those on the data set `named`."""
    known = papers.of_preset(preset)
    if named is None:
        return known
    if named not in known:
        hint = did_you_mean(named, known) or f"; there are some on {', '.join(known)}"
        raise ConfigError(f"no published figures for '{preset}' on '{named}'{hint}")
    return {named: known[named]}


def _settings_of(known: Mapping[str, list[Result]], preset: str, row: str | None) -> tuple[str, ...]:
    """Return what a row of a table sets on top of the preset; nothing if no row is named."""
    if row is None:
        return ()
    by_name = {result.row: result.settings for results in known.values() for result in results}
    if row not in by_name:
        hint = did_you_mean(row, by_name) or f"; there are {', '.join(by_name)}"
        raise ConfigError(f"no published row '{row}' for '{preset}'{hint}")
    return by_name[row]


def _first(split: Split, limit: int | None) -> Split:
    return split if limit is None else split.take(np.arange(min(limit, len(split))))


def _verdict(difference: float, tolerance: float) -> Verdict:
    if abs(difference) <= tolerance:
        return "agrees"
    return "above" if difference > 0 else "below"


def _exact(what: str, expected: int, got: int) -> Check:
    return Check(what, f"{expected:,}", f"{got:,}" if got else "none", expected == got)


def _mean(what: str, expected: float, got: float) -> Check:
    return Check(what, f"{expected:.2f}", f"{got:.2f}", abs(got - expected) <= MEANS_DIFFER * expected)


def _label_counts(dataset: Dataset) -> tuple[int, int, int]:
    """Return how many labels some text has, are listed, and train has; papers give any of these."""
    has_texts = np.zeros(len(dataset.vocabulary), bool)
    for split in dataset.splits.values():
        has_texts |= split.labels.texts_per_label() > 0
    in_train = dataset.splits["train"].labels.texts_per_label() if "train" in dataset.splits else np.zeros(0)
    return int(np.count_nonzero(has_texts)), len(has_texts), int(np.count_nonzero(in_train))


def _labels(counts: tuple[int, int, int], expected: DataCounts) -> tuple[Check, int]:
    """Return whether one of the counts of labels is a published one, and that count, or else the labels with texts."""
    wanted = (expected.n_labels, *expected.other_n_labels)
    used, listed, in_train = counts
    same = next((n for n in (used, listed, in_train) if n in wanted), None)
    others = {"listed": listed, "in train": in_train}
    counted = ", ".join([f"{used:,}", *(f"{n:,} {what}" for what, n in others.items() if n != used)])
    check = Check(
        "labels",
        expected=" or ".join(f"{n:,}" for n in wanted),
        got=counted if same is None else f"{same:,}",
        agrees=same is not None,
    )
    return check, used if same is None else same
