"""Train one fast model that ranks labels as a stack does: what is learned once by many is told to one.

    stack, its training texts  ->  a student, and what it keeps of the stack's gain

The student is trained on the labels of all texts. Then it is asked about texts that it has not seen, in the folds of
the stack, and `LabelScales` learns from what the stack says of the same texts, which it had not seen either. So the
student costs hardly more per text than it would alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.errors import ConfigError, DataError, LongtailError
from longtail.evaluation import timed_top_k, was_trained_on
from longtail.methods import create_method
from longtail.methods.base import Method
from longtail.run.run import Run
from longtail.run.stages import FolderStages, claimed
from longtail.scores.calibrate import fit_calibration
from longtail.scores.chain import Chain
from longtail.scores.label_scales import fit_label_scales
from longtail.scores.step import ScoreStep
from longtail.stacking.folds import folds_of, lists_of_unseen
from longtail.stacking.held_out import HeldOut, ndcg
from longtail.training import tell_kept, work_folder
from longtail.types import NO_LABEL, TopK

_LENGTH = 40
"""Labels in the lists that are compared."""
_PENALTIES = (1.0, 10.0, 100.0)
"""How strongly the scales of labels are held together; the best one on the other half of the texts is taken."""
_CALIBRATED = 20
"""Labels of each text that scores are calibrated on."""
_TIMED = 1000
"""Texts that the speed is measured on."""


@dataclass(frozen=True)
class Distilled:
    """A student, beside the stack that it learned from and beside itself without what it learned there."""

    model: Method
    n_held_out: int
    """Training texts that the figures are of; none of the models had seen them."""
    ndcg: Mapping[str, float]
    """nDCG@5 on these texts of the `stack`, the `student`, and the student `alone`, without the stack."""
    ms_per_text: Mapping[str, float]
    """Milliseconds per text of a batch, of `stack` and `student`."""

    @property
    def kept(self) -> float | None:
        """The share of the stack's gain over the student alone that the student keeps; None where there is no gain."""
        gain = self.ndcg["stack"] - self.ndcg["alone"]
        return (self.ndcg["student"] - self.ndcg["alone"]) / gain if gain > 0 else None

    def plain(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        figures = {"n_held_out": self.n_held_out, "nDCG@5": dict(self.ndcg), "kept": self.kept}
        return figures | {"ms_per_text": dict(self.ms_per_text)}


def distil(
    stack: Method,
    split: Split,
    to: str = "linear",
    *,
    options: Mapping[str, Any] | None = None,
    n_folds: int | None = None,
    run: Run | None = None,
) -> Distilled:
    """Return a student of a stack.

    Args:
        stack: A trained stack, or `auto` that kept one.
        split: The texts that it was trained on.
        to: The method or preset of the student.
        options: Options of the student.
        n_folds: From the texts of how many folds the student learns what the stack says; each is one more training of
            the student. By default all whose lists the stack kept.
        run: How the work is done.
    """
    run = run or Run()
    teacher = getattr(stack, "model_", stack)
    held_out = _held_out(teacher, stack.name)
    if not was_trained_on(stack, split):
        raise DataError(
            "distil needs the very texts that the stack was trained on, got others; name the data of its training"
        )
    seed = teacher.options.seed
    folds = folds_of(split, teacher.options.n_folds, seed)
    chosen = np.isin(folds[held_out.rows], np.unique(folds[held_out.rows])[:n_folds])
    rows, labels = held_out.rows[chosen], split.labels.take(held_out.rows[chosen])
    better = _some(held_out.lists, chosen, split.labels.n_labels)

    def create() -> Method:
        return create_method(to, {"seed": seed}, options, {"calibrate": False})  # the scores of the student are, below

    def train_and_ask(train: NDArray[np.int64], asked: NDArray[np.int64], within: Run) -> TopK:
        student = create().fit(split.take(train), run=within)
        return student.top_k(split.take(asked), _LENGTH, run=within)

    lists = lists_of_unseen(train_and_ask, folds, rows, _LENGTH, run.within("student"))
    model = create().fit(split, run=run.within("final"))
    n_labels = len(model.vocabulary_)
    with run.progress.step("learn from the stack"):
        halves = folds_of(split.take(rows), 2, seed + 1)
        tried = {penalty: _cross_fitted(lists, better, halves, model, penalty) for penalty in _PENALTIES}
        penalty = max(tried, key=lambda one: ndcg(tried[one], labels))
        learned: list[ScoreStep] = []
        unseen = lists
        if ndcg(tried[penalty], labels) > ndcg(lists, labels):
            learned, unseen = [fit_label_scales(lists, better, n_labels, penalty=penalty)], tried[penalty]
        calibration = fit_calibration(unseen.first(_CALIBRATED), labels)
    model.chain_ = Chain((*model.chain_.steps, *learned, calibration))
    ndcg_of = {"stack": ndcg(better, labels), "student": ndcg(unseen, labels), "alone": ndcg(lists, labels)}
    model.facts_["distilled"] = {"from": stack.name, "n_held_out": len(rows), "nDCG@5": ndcg_of}
    timed = split.take(rows[:_TIMED])
    speed = {"stack": _ms_per_text(stack, timed, run), "student": _ms_per_text(model, timed, run)}
    return Distilled(model, len(rows), ndcg_of, speed)


def distil_and_save(
    stack: Method,
    split: Split,
    out: Path,
    to: str = "linear",
    *,
    options: Mapping[str, Any] | None = None,
    n_folds: int | None = None,
    facts: Mapping[str, Any] | None = None,
    resume: bool = False,
    run: Run | None = None,
) -> Distilled:
    """Distil, and save the student to `out`; finished stages are kept beside it, and used with `resume`.

    The other arguments are those of `distil`; `facts` are added to the student's `facts_`.
    """
    run, work = run or Run(), work_folder(out)
    key = {"stack": stack.facts_["fingerprint"], "options": stack.options.plain(), "to": to, "student": options}
    with claimed(work):
        stages = FolderStages.open(work, key, resume)
        try:
            distilled = distil(stack, split, to, options=options, n_folds=n_folds, run=replace(run, stages=stages))
            distilled.model.facts_ |= facts or {}
            with run.progress.step("save"):
                distilled.model.save(out)
        except (KeyboardInterrupt, LongtailError):
            tell_kept(work, "stages")
            raise
    stages.close()
    return distilled


def _held_out(teacher: Method, name: str) -> HeldOut:
    """Return the lists that a stack kept of texts that it has not seen."""
    held_out = getattr(teacher, "held_out_", None)
    if not isinstance(held_out, HeldOut) or not len(held_out.rows):
        kept = f"{name}, which kept {teacher.name}" if teacher.name != name else name
        raise ConfigError(
            f"distil needs a stack, or auto that kept one, with its lists of held-out texts, got {kept}; train a stack"
        )
    return held_out


def _some(lists: TopK, chosen: NDArray[np.bool_], n_labels: int) -> TopK:
    """Return some of a stack's lists without labels that have no training text, which a student cannot suggest."""
    labels, scores = lists.labels[chosen], lists.scores[chosen]
    known = labels < n_labels
    return TopK(np.where(known, labels, np.int32(NO_LABEL)), np.where(known, scores, -np.inf).astype(np.float32))


def _cross_fitted(lists: TopK, better: TopK, halves: NDArray[np.int64], model: Method, penalty: float) -> TopK:
    """Return the student's lists of each half, scaled by what was learned on the other one."""
    scaled = TopK(lists.labels.copy(), lists.scores.copy())
    for half in (0, 1):
        here, there = halves == half, halves != half
        step = fit_label_scales(_rows(lists, there), _rows(better, there), len(model.vocabulary_), penalty=penalty)
        one = step.apply(_rows(lists, here), lists.k, model.labels)
        scaled.labels[here], scaled.scores[here] = one.labels, one.scores
    return scaled


def _rows(lists: TopK, rows: NDArray[np.bool_]) -> TopK:
    return TopK(lists.labels[rows], lists.scores[rows])


def _ms_per_text(model: Method, texts: Split, run: Run) -> float:
    return 1000 * timed_top_k(model, texts, 5, run=run)[1] / len(texts)
