"""Plots of an examination: the distributions of labels and text lengths.

    label_frequency.png   training texts of each label by rank, both axes logarithmic, the head marked
    text_lengths.png      words per text, as a share of the texts of each split

Needs matplotlib (extra `plots`), which is imported when something is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from longtail.data.examination import Examination, percent
from longtail.errors import LongtailError, MissingExtraError
from longtail.files import whole

INK, FAINT, HEAD, HEAD_TEXT = "#22303c", "#c9d1d9", "#e8833a", "#a0520f"
SPLIT_COLOURS = ("#2b6cb0", "#e8833a", "#3d9970", "#8e5ea2")
SIZE_INCHES = (7.0, 4.2)
DOTS_PER_INCH = 150
NO_WORDS = 0.7
"""Where texts without words are drawn on the logarithmic axis of words."""


def plot_examination(examination: Examination, folder: str | Path) -> list[Path]:
    """Draw the plots into `folder` and return their paths; plots without data are left out."""
    folder = Path(folder)
    pictures = {}
    if examination.n_head:
        pictures["label_frequency.png"] = _label_frequency(examination)
    if any(split.most_words for split in examination.splits):
        pictures["text_lengths.png"] = _text_lengths(examination)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, figure in pictures.items():
            with whole(folder / name) as temporary:
                figure.savefig(temporary, dpi=DOTS_PER_INCH)
    except OSError as error:
        raise LongtailError(f"cannot write pictures to {folder}: {error.strerror or error}") from error
    return [folder / name for name in pictures]


def _label_frequency(examination: Examination) -> Any:
    frequency = examination.label_frequency[examination.label_frequency > 0]
    n_seen, n_head = len(frequency), examination.n_head
    figure, axes = _axes("labels, most frequent first", "training texts", f"{examination.name}: texts per label")
    ranks = np.arange(1, n_seen + 1)
    # Ranks with equal frequency make steps; a plot of a million labels shows no more than their ends.
    ends = np.flatnonzero(np.diff(frequency, prepend=frequency[0] + 1, append=0))
    shown = np.unique(np.concatenate([ends[ends < n_seen], ends[ends > 0] - 1, [n_seen - 1]]))
    axes.loglog(ranks[shown], frequency[shown], color=INK, linewidth=1.8)
    axes.axvspan(ranks[0] * 0.85, n_head, color=HEAD, alpha=0.13, linewidth=0)
    axes.axvline(n_head, color=HEAD, linewidth=1.2)
    once, unseen = int(np.count_nonzero(frequency == 1)), examination.n_labels - n_seen
    notes = [f"{n_seen:,} labels in training", *([f"{once:,} of them once"] if once else [])]
    notes += [f"{unseen:,} more without a training text"] if unseen else []
    head = f"The most frequent 20 % ({n_head:,})\nhold {percent(examination.head_mass)} of all assignments"
    axes.text(0.03, 0.22, "\n".join(notes), transform=axes.transAxes, color=INK)
    axes.text(0.03, 0.06, head, transform=axes.transAxes, color=HEAD_TEXT)
    axes.set_xlim(0.85, n_seen * 1.2)
    axes.set_ylim(0.8, float(frequency[0]) * 1.6)
    _plain_ticks(axes.xaxis)
    _plain_ticks(axes.yaxis)
    return figure


def _text_lengths(examination: Examination) -> Any:
    figure, axes = _axes("words per text", "share of the split's texts", f"{examination.name}: how long texts are")
    for split, colour in zip(examination.splits, SPLIT_COLOURS * len(examination.splits), strict=False):
        if split.n_texts:
            edges = np.maximum(split.length_edges, NO_WORDS)  # a log axis has no place for 0 words
            label = f"{split.name}: median {split.median_words:,.0f}, longest {split.most_words:,}"
            axes.stairs(np.array(split.length_counts) / split.n_texts, edges, color=colour, linewidth=1.8, label=label)
    filled = [
        (low, high)
        for split in examination.splits
        for low, high, count in zip(split.length_edges, split.length_edges[1:], split.length_counts, strict=False)
        if count
    ]
    axes.set_xscale("log")
    axes.set_xlim(max(min(filled)[0], NO_WORDS) / 1.3, max(high for _, high in filled) * 1.3)
    axes.set_ylim(0, axes.get_ylim()[1] * 1.25)  # room for the legend
    axes.legend(frameon=False, labelcolor=INK, loc="upper left")
    _plain_ticks(axes.xaxis)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    return figure


def _axes(x: str, y: str, title: str) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib: pip install 'longtail[plots]'") from error
    figure = Figure(figsize=SIZE_INCHES, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, loc="left", color=INK, fontweight="bold")
    axes.set_xlabel(x, color=INK)
    axes.set_ylabel(y, color=INK)
    axes.grid(color=FAINT, linewidth=0.6, alpha=0.7)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(FAINT)
    axes.tick_params(colors=INK, which="both", color=FAINT)
    return figure, axes


def _plain_ticks(axis: Any) -> None:
    axis.set_minor_formatter(lambda value, _: "")
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else "")
