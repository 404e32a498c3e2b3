"""The result of the data doctor: counts per split, the label-frequency curve, faults and warnings.

    Examination
      splits    one SplitCounts each
      label_frequency   training texts of each label, most frequent first (n_labels,)
      faults    what would break training
      warnings  what makes training or scores worse than they need be

`plain()` is the JSON form, `examination_markdown` the form for people.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from longtail.tables import Table, markdown_lines

HEAD_SHARE = 0.2
"""The most frequent labels whose share of all assignments is reported."""
CURVE_POINTS = 60
BANDS = (0, 1, 2, 5, 10, 100, 1000)
"""Lower ends of the bands of training texts per label."""


@dataclass(frozen=True)
class Finding:
    """Something about the data that its owner should know."""

    kind: str
    severity: Literal["fault", "warning"]
    count: int
    message: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class SplitCounts:
    """The size of a split, and the distribution of its text lengths."""

    name: str
    n_texts: int
    n_labels: int
    """Labels that at least one text of this split has."""
    n_assignments: int
    labels_per_text: float
    words_per_text: float
    median_words: float
    most_words: int
    n_empty: int
    n_unlabelled: int
    n_repeated: int
    """Texts that occurred before in the same split."""
    length_edges: tuple[int, ...]
    """Edges of the histogram of words per text: bin i holds edge i <= words < edge i + 1."""
    length_counts: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Examination:
    """The report on a data set."""

    name: str
    n_labels: int
    splits: tuple[SplitCounts, ...]
    label_frequency: NDArray[np.int64]  # (n_labels,), descending
    findings: tuple[Finding, ...]

    @property
    def faults(self) -> tuple[Finding, ...]:
        """What would break training."""
        return tuple(finding for finding in self.findings if finding.severity == "fault")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is odd, but can be trained on."""
        return tuple(finding for finding in self.findings if finding.severity == "warning")

    @property
    def n_head(self) -> int:
        """How many labels are the most frequent 20 % of those that occur in training."""
        return int(np.ceil(HEAD_SHARE * np.count_nonzero(self.label_frequency)))

    @property
    def head_mass(self) -> float:
        """The share of all training assignments that the head labels hold."""
        total = int(self.label_frequency.sum())
        return float(self.label_frequency[: self.n_head].sum() / total) if total else 0.0

    def bands(self) -> list[dict[str, Any]]:
        """Return, for each band of training texts per label, its labels and share of assignments."""
        total = max(int(self.label_frequency.sum()), 1)
        rows = []
        for low, after in zip(BANDS, [*BANDS[1:], None], strict=True):
            inside = self.label_frequency >= low
            if after is not None:
                inside &= self.label_frequency < after
            share = float(self.label_frequency[inside].sum() / total)
            high = None if after is None else after - 1
            rows.append({"from": low, "to": high, "n_labels": int(inside.sum()), "share_of_assignments": share})
        return rows

    def curve(self) -> list[tuple[int, int]]:
        """Return (rank, training texts) at ranks spread evenly on a log scale, to draw the curve."""
        n_seen = int(np.count_nonzero(self.label_frequency))
        if not n_seen:
            return []
        ranks = np.unique(np.geomspace(1, n_seen, CURVE_POINTS).round().astype(np.int64))
        return [(int(rank), int(self.label_frequency[rank - 1])) for rank in ranks]

    def plain(self) -> dict[str, Any]:
        """Everything as plain data for JSON; the curve is thinned, so it stays small for a million labels."""
        return {
            "name": self.name,
            "n_labels": self.n_labels,
            "splits": {split.name: _plain(split, without="name") for split in self.splits},
            "label_frequency": {
                "curve": [list(point) for point in self.curve()],
                "bands": self.bands(),
                "n_head": self.n_head,
                "head_mass": self.head_mass,
            },
            "faults": [_plain(finding, without="severity") for finding in self.faults],
            "warnings": [_plain(finding, without="severity") for finding in self.warnings],
        }


def split_table(examination: Examination) -> Table:
    """Return the sizes of the splits."""
    return Table(
        ["split", "texts", "labels", "assignments", "labels per text", "words per text", "median", "longest"],
        [
            [
                split.name, f"{split.n_texts:,}", f"{split.n_labels:,}", f"{split.n_assignments:,}",
                f"{split.labels_per_text:.2f}", f"{split.words_per_text:.1f}", f"{split.median_words:,.0f}",
                f"{split.most_words:,}",
            ]
            for split in examination.splits
        ],
    )  # fmt: skip


def band_table(examination: Examination) -> Table:
    """Return how many labels have how many training texts."""
    return Table(["training texts", "labels", "of all assignments"], [_band_row(band) for band in examination.bands()])


def examination_markdown(examination: Examination) -> str:
    """Return the report as Markdown that also reads well as plain text."""
    lines = [f"# {examination.name}", "", *markdown_lines(split_table(examination))]
    seen = int(np.count_nonzero(examination.label_frequency))
    if seen:
        lines += [
            *("", "## Labels by number of training texts", ""),
            *markdown_lines(band_table(examination)),
            "",
            f"The most frequent 20 % of the {seen:,} labels in training ({examination.n_head:,}) hold "
            f"{percent(examination.head_mass)} of all assignments.",
        ]
    for title, findings in (("Faults: training would fail", examination.faults), ("Warnings", examination.warnings)):
        if findings:
            lines += ["", f"## {title}", ""]
            for finding in findings:
                lines.append(f"- {finding.message}")
                lines += [f"    - {example}" for example in finding.examples]
    if not examination.findings:
        lines += ["", "Nothing to complain about."]
    return "\n".join(lines) + "\n"


def percent(share: float) -> str:
    """Return a share in per cent; only 0 is shown as 0.0 %, only 1 as 100.0 %."""
    if 0 < share < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= share < 1:
        return "> 99.9 %"
    return f"{share * 100:.1f} %"


def _band_row(band: dict[str, Any]) -> list[str]:
    low, high = band["from"], band["to"]
    span = f"{low:,} or more" if high is None else f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return [span, f"{band['n_labels']:,}", percent(band["share_of_assignments"])]


def _plain(value: Finding | SplitCounts, without: str) -> dict[str, Any]:
    fields = dataclasses.asdict(value)
    del fields[without]
    return {name: list(field) if isinstance(field, tuple) else field for name, field in fields.items()}
