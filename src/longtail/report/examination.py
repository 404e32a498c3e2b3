"""The page of the data doctor: what it says in words, faults and warnings, then counts and pictures."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from longtail.data.examination import Examination, Finding, SplitCounts, band_table, percent, split_table
from longtail.report.html import document, figures_html, list_html, section, table_html
from longtail.report.pictures import WIDTH, Frame, box, frequency_picture, log_scale, powers, svg

LENGTHS = Frame(WIDTH, 200, 52, 14, 12, 44)
NO_WORDS = 0.7
"""Where texts without words are drawn on the logarithmic axis of words."""


def html_examination(examination: Examination, report: dict[str, Any]) -> str:
    """Return the page of an examination; `report` is its plain data, with when and where it was made."""
    sections = [section("In words", list_html(verdict(examination)))]
    for title, findings in (("Faults: training would fail", examination.faults), ("Warnings", examination.warnings)):
        sections += [section(title, "".join(map(_finding, findings)))] if findings else []
    sections.append(section("Parts", table_html(split_table(examination))))
    curve = examination.curve()
    if curve:
        picture = figures_html([(frequency_picture(curve), "How many training texts each label has.")])
        labels = f'<div class="two"><div>{table_html(band_table(examination))}</div>{picture}</div>'
        sections.append(section("Labels by number of training texts", labels))
    lengths = [
        (length_picture(split), f"Words per text of {split.name}") for split in examination.splits if split.n_texts
    ]
    sections += [section("How long texts are", figures_html(lengths))] if lengths else []
    sizes = ", ".join(f"{split.n_texts:,} {split.name} texts" for split in examination.splits)
    return document(report, examination.name, escape(f"{sizes}, {examination.n_labels:,} labels"), sections)


def verdict(examination: Examination) -> list[str]:
    """Return sentences that say whether the data can be trained on, and what stands out."""
    n_faults, n_warnings = len(examination.faults), len(examination.warnings)
    sentences = [
        f"Training would fail: {_count(n_faults, 'fault')}." if n_faults else "Nothing would break training.",
        f"{_count(n_warnings, 'thing')} may make training or scores worse than they could be."
        if n_warnings
        else "There is nothing to warn about.",
    ]
    seen = examination.label_frequency[examination.label_frequency > 0]
    if len(seen):
        once = int(np.count_nonzero(seen == 1))
        sentences.append(
            f"{_count(len(seen), 'label')} have training texts, {once:,} of them a single one; the most frequent fifth "
            f"holds {percent(examination.head_mass)} of all assignments."
        )
    return sentences


def length_picture(split: SplitCounts) -> str:
    """Draw how many words the texts of a split have, as shares of its texts."""
    frame = LENGTHS
    shares = np.array(split.length_counts) / split.n_texts
    edges = np.maximum(split.length_edges, NO_WORDS)
    x = log_scale(NO_WORDS, float(edges[-1]) * 1.05, frame.left, frame.end)
    highest = float(shares.max()) * 1.1

    def y(share: float) -> float:
        return float(frame.floor - share / highest * (frame.floor - frame.top))

    step = next(step for step in (0.05, 0.1, 0.2, 0.5) if highest / step <= 6)
    y_ticks = {y(share): f"{share:.0%}" for share in np.arange(0, highest, step).tolist()}
    x_ticks = {x(tick): f"{tick:,}" for tick in powers(split.most_words)}
    bars = [
        box("bar", x(low), y(share), max(x(high) - x(low) - 1, 0.5), frame.floor - y(share))
        for low, high, share in zip(edges.tolist(), edges[1:].tolist(), shares.tolist(), strict=False)
        if share
    ]
    axes = frame.axes(x_ticks, y_ticks, ("words", "texts"))
    return svg(frame.width, frame.height, f"Words per text of {split.name}", [*axes, *bars])


def _finding(finding: Finding) -> str:
    """Return what was found, with its examples."""
    kind = escape(finding.kind[:1].upper() + finding.kind[1:])
    return f"<article><h3>{kind}</h3><p>{escape(finding.message)}</p>{list_html(finding.examples)}</article>"


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
