"""Parts of the training texts, so that a member can be asked about texts that it has not seen.

split (n_texts)             ->  folds (n_texts,) from 0; copies of a text are in the same fold
folds, train-and-ask        ->  TopK: lists of some texts, each by a model that was trained without the text's fold
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.kernels.rows import Rows
from longtail.neighbours.hashes import content_hashes, row_hashes
from longtail.run.run import Run
from longtail.types import TopK

Rows64 = NDArray[np.int64]


def folds_of(split: Split, n_folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each text, (n_texts,); folds are about equally large, and copies are never in two."""
    contents = _hashes(split)
    distinct, number = np.unique(contents, return_inverse=True)
    shuffled = np.random.default_rng(seed).permutation(len(distinct))
    return np.asarray(shuffled[number] % n_folds, np.int64)


def texts_of_folds(folds: Rows64, n_folds: int, most: int, seed: int) -> Rows64:
    """Return row numbers of texts of the first folds, ascending: at most `n_folds` folds, and no more than it takes.

    If there are more than `most` texts, `most` of them are drawn at random.
    """
    n_texts = np.cumsum(np.bincount(folds, minlength=n_folds)[:n_folds])
    rows = np.flatnonzero(folds <= np.searchsorted(n_texts, min(most, n_texts[-1])))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def n_asked_folds(n_texts: int, n_folds: int, most_folds: int, most_texts: int) -> int:
    """Return of how many folds about `texts_of_folds` takes texts, if `n_texts` are split into `n_folds`."""
    return min(most_folds, max(1, ceil(most_texts * n_folds / max(n_texts, 1))))


def lists_of_unseen(
    train_and_ask: Callable[[Rows64, Rows64, Run], TopK], folds: Rows64, rows: Rows64, length: int, run: Run
) -> TopK:
    """Return lists of texts `rows`, fold by fold; each fold's are a stage of the run.

    `train_and_ask(train, asked, run)` trains on the texts `train` and returns the lists of the texts `asked`.
    """
    lists = TopK.empty(len(rows), length)
    for fold in np.unique(folds[rows]).tolist():
        places = np.flatnonzero(folds[rows] == fold)
        within = run.within(f"fold-{fold}")

        def build(fold: int = fold, asked: Rows64 = rows[places], within: Run = within) -> Mapping[str, NDArray[Any]]:
            return vars(train_and_ask(np.flatnonzero(folds != fold), asked, within))

        answers = within.stages.arrays("lists", build)[0]
        width = answers["labels"].shape[1]  # a model lists no more labels than it can score
        lists.labels[places, :width], lists.scores[places, :width] = answers["labels"], answers["scores"]
    return lists


def _hashes(split: Split) -> NDArray[Any]:
    if split.has_texts:
        return content_hashes(split.texts, sorted(split.texts.column_names))
    return row_hashes(Rows.of(split.features))
