"""Does a run give what a paper reports? First whether the data are the same, then whether the figures are.

    Dataset, DataCounts           ->  check_counts  ->  Check a count: what, expected, got
    metrics of a run, Result      ->  compare       ->  Comparison: a row a figure, and a verdict

A verdict is `agrees` where the difference is at most the tolerance of the published result, else `above` or `below`.
A whole comparison is `below` where any figure is, `above` where some are and none is below, else `agrees`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from longtail.data.dataset import Dataset
from longtail.errors import DataError
from longtail.published import DataCounts, Result

Verdict = Literal["agrees", "above", "below"]

MEANS_DIFFER = 0.02
"""Means are the same up to this share: papers round them, and do not all say over which part they take them."""
_PARTS = {"train": "training texts", "dev": "dev texts", "test": "test texts"}


@dataclass(frozen=True)
class Check:
    """One count of the data beside the published one, written for people."""

    what: str
    expected: str
    got: str
    agrees: bool

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}, got {self.got}"


class Row(NamedTuple):
    """One figure in per cent."""

    metric: str
    ours: float
    published: float
    difference: float
    """Ours less the published one, rounded as it is shown: what is shown and what is judged are the same."""
    verdict: Verdict | None
    """None where the run was not meant to be compared."""


@dataclass(frozen=True)
class Comparison:
    """A run beside a published result."""

    result: Result
    rows: tuple[Row, ...]

    @property
    def verdict(self) -> Verdict | None:
        """One word for all figures."""
        found = {row.verdict for row in self.rows}
        if None in found:
            return None
        return "below" if "below" in found else "above" if "above" in found else "agrees"

    def sentence(self) -> str:
        """The verdict with its reason."""
        most = f"{self.result.tolerance:g}"
        if self.verdict is None:
            return "no verdict: not all texts were used"
        if self.verdict == "agrees":
            return f"agrees: no figure differs by more than {most}"
        names = ", ".join(row.metric for row in self.rows if row.verdict == self.verdict)
        return f"{self.verdict}: {names} by more than {most}"

    def plain(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            **self.result.plain(),
            "rows": [row._asdict() for row in self.rows],
            "verdict": self.verdict,
        }


def check_counts(dataset: Dataset, expected: DataCounts) -> tuple[Check, ...]:
    """Every published count beside that of the data."""
    sizes = {part: len(dataset.splits[part]) if part in dataset.splits else 0 for part in _PARTS}
    wanted = {"train": expected.n_train, "dev": expected.n_dev, "test": expected.n_test}
    checks = [_exact(_PARTS[part], wanted[part], sizes[part]) for part in _PARTS if wanted[part]]
    labels, n_labels = _labels(_label_counts(dataset), expected)
    checks.append(labels)
    n_assignments = len(dataset.splits["train"].labels.indices) if sizes["train"] else 0
    checks.append(_mean("labels a text", expected.labels_per_text, n_assignments / max(sizes["train"], 1)))
    if expected.texts_per_label is not None:
        checks.append(_mean("texts a label", expected.texts_per_label, n_assignments / max(n_labels, 1)))
    features = dataset.splits["train"].features if sizes["train"] else None
    if expected.n_features is not None and features is not None:
        checks.append(_exact("features", expected.n_features, features.shape[1]))
    return tuple(checks)


def find_data(dataset: Dataset, known: Mapping[str, DataCounts]) -> str:
    """The name of the published data set that this one is, or comes nearest to."""

    def distance(name: str) -> tuple[int, float]:
        n_wrong = sum(not check.agrees for check in check_counts(dataset, known[name]))
        n_train = len(dataset.splits["train"]) if "train" in dataset.splits else 0
        return n_wrong, abs(math.log(max(n_train, 1) / known[name].n_train))

    return min(known, key=distance)


def need_same(name: str, expected: DataCounts, checks: Iterable[Check], guessed: bool = False) -> None:
    """Refuse data that are not those of the paper; `guessed` where only their counts told which these are."""
    wrong = "; ".join(str(check) for check in checks if not check.agrees)
    if wrong:
        fault = "the data only come near" if guessed else "the data are not"
        other = ", or name the data set with --as" if guessed else ""
        raise DataError(f"{fault} {name} ({expected.title}): {wrong}; go on all the same with --force{other}")


def list_lengths(results: Iterable[Result]) -> tuple[int, ...]:
    """The k of all figures in results, in rising order."""
    return tuple(sorted({int(name.partition("@")[2]) for result in results for name in result.metrics}))


def compare(metrics: Mapping[str, float], result: Result, judged: bool = True) -> Comparison:
    """Figures of a run (fractions) beside the published ones (per cent); without verdicts unless `judged`."""
    rows = []
    for name, published in result.metrics.items():
        ours = 100 * metrics[name]
        difference = round(ours - published, 2)
        verdict = _verdict(difference, result.tolerance) if judged else None
        rows.append(Row(name, ours, published, difference, verdict))
    return Comparison(result, tuple(rows))


def plain_checks(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """Checks as plain data for JSON."""
    return [asdict(check) for check in checks]


def _verdict(difference: float, tolerance: float) -> Verdict:
    if abs(difference) <= tolerance:
        return "agrees"
    return "above" if difference > 0 else "below"


def _exact(what: str, expected: int, got: int) -> Check:
    return Check(what, f"{expected:,}", f"{got:,}" if got else "none", expected == got)


def _mean(what: str, expected: float, got: float) -> Check:
    return Check(what, f"{expected:.2f}", f"{got:.2f}", abs(got - expected) <= MEANS_DIFFER * expected)


def _label_counts(dataset: Dataset) -> tuple[int, int, int]:
    """Labels that some text has, that are listed, and that train has: papers give any of these."""
    has_texts = np.zeros(len(dataset.vocabulary), bool)
    for split in dataset.splits.values():
        has_texts |= split.labels.texts_per_label() > 0
    in_train = dataset.splits["train"].labels.texts_per_label() if "train" in dataset.splits else np.zeros(0)
    return int(np.count_nonzero(has_texts)), len(has_texts), int(np.count_nonzero(in_train))


def _labels(counts: tuple[int, int, int], expected: DataCounts) -> tuple[Check, int]:
    """Whether one of the data's numbers of labels is a published one; and which, or how many labels have texts."""
    wanted = (expected.n_labels, *expected.other_n_labels)
    used, listed, in_train = counts
    same = next((n for n in (used, listed, in_train) if n in wanted), None)
    others = {"listed": listed, "in train": in_train}
    told = [f"{used:,}", *(f"{n:,} {what}" for what, n in others.items() if n != used)]
    got = ", ".join(told) if same is None else f"{same:,}"
    agrees = same is not None
    return Check("labels", " or ".join(f"{n:,}" for n in wanted), got, agrees), used if same is None else same
