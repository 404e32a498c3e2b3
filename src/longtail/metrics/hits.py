"""Compare predictions with the truth: which predicted labels are true, at which place, of which band.

    TopK (n_texts, k), LabelMatrix (n_texts, n_labels), training texts per label
        ->  Judged: hits as (text, place, label) triples, true labels as (text, label) pairs

Texts without true labels are dropped here, so that no metric sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from longtail.errors import DataError
from longtail.metrics.names import ALL, BANDS, MetricOptions
from longtail.types import NO_LABEL, LabelMatrix, TopK

_FEWEST_TEXTS = (101, 11, 1)  # of head, torso and tail; unseen labels have none


@dataclass(frozen=True, eq=False)
class Judged:
    """Predictions and truth of the texts that have true labels."""

    n_texts: int
    n_texts_without_labels: int
    labels: NDArray[np.int32]  # (n_texts, width) as predicted
    scores: NDArray[np.float32]  # (n_texts, width)
    train_counts: NDArray[np.int64]  # (n_labels,) of all labels that occur anywhere
    n_train_texts: int
    label_bands: NDArray[np.int8]  # (n_labels + 1,) places in BANDS; the last one, -1, is that of NO_LABEL
    true_text: NDArray[np.int64]  # (n_true,) ascending
    true_label: NDArray[np.int32]  # (n_true,) within a text the rarest in training first
    hit_text: NDArray[np.int64]  # (n_hits,)
    hit_place: NDArray[np.int64]  # (n_hits,) from 0
    hit_label: NDArray[np.int32]  # (n_hits,)

    def bands(self) -> Iterator[BandHits]:
        """Yield all labels, then each band that occurs in the truth."""
        for band in (ALL, *BANDS):
            true = self.in_band(self.true_label, band)
            if true.any():
                hits = self.in_band(self.hit_label, band)
                text = self.true_text[true]
                n_true = np.bincount(text, minlength=self.n_texts)
                yield BandHits(
                    band=band,
                    n_true=n_true,
                    true_text=text,
                    true_label=self.true_label[true],
                    true_place=np.arange(len(text)) - (np.cumsum(n_true) - n_true)[text],
                    hit_text=self.hit_text[hits],
                    hit_place=self.hit_place[hits],
                    hit_label=self.hit_label[hits],
                )

    def in_band(self, labels: NDArray[np.int32], band: str) -> NDArray[np.bool_]:
        """Return which of these labels, in an array of any shape, belong to the band; NO_LABEL never does."""
        inside = labels != NO_LABEL if band == ALL else self.label_bands[labels] == BANDS.index(band)
        return np.asarray(inside, bool)


class BandHits(NamedTuple):
    """True labels and hits of one band."""

    band: str
    n_true: NDArray[np.int64]  # (n_texts,)
    true_text: NDArray[np.int64]
    true_label: NDArray[np.int32]
    true_place: NDArray[np.int64]  # place in the text's ideal list, from 0
    hit_text: NDArray[np.int64]
    hit_place: NDArray[np.int64]
    hit_label: NDArray[np.int32]


class Cut(NamedTuple):
    """A way to turn ranked lists into sets of predicted labels."""

    suffix: str  # of the metric's name: "@5", or "" for the threshold
    predicted: NDArray[np.bool_]  # (n_texts, width)


def cuts(judged: Judged, options: MetricOptions) -> list[Cut]:
    """Return one set of predicted labels for each k, and one for the threshold."""
    filled = judged.labels != NO_LABEL
    place = np.arange(judged.labels.shape[1])
    sets = [Cut(f"@{k}", filled & (place < k)) for k in options.at]
    return sets if options.threshold is None else [*sets, Cut("", filled & (judged.scores >= options.threshold))]


def judge(
    predicted: TopK, truth: LabelMatrix, train_counts: NDArray[Any], n_train_texts: int, options: MetricOptions
) -> Judged:
    """Return the hits. `train_counts` may be shorter than the labels: the others were not seen in training."""
    if len(predicted) != len(truth):
        raise DataError(
            f"predictions and true labels must be of the same texts, got {len(predicted)} and {len(truth)} texts"
        )
    kept = np.flatnonzero(truth.labels_per_text())
    if len(kept) == 0:
        raise DataError(f"at least one text must have true labels, got none in {len(truth)} texts")
    n_without = len(truth) - len(kept)
    if options.threshold is None:
        predicted = predicted.first(max(options.at))
    if n_without:
        predicted, truth = TopK(predicted.labels[kept], predicted.scores[kept]), truth.take(kept)
    n_labels = max(truth.n_labels, len(train_counts), int(predicted.labels.max(initial=-1)) + 1)
    counts = np.zeros(n_labels, np.int64)
    counts[: len(train_counts)] = train_counts
    true_text = np.repeat(np.arange(len(truth)), truth.labels_per_text())
    is_true, place_in_truth = _look_up(predicted.labels, true_text, truth.indices, n_labels)
    if np.bincount(place_in_truth).max(initial=0) > 1:
        twice = np.bincount(place_in_truth).argmax()
        raise DataError(
            f"a text must get a label only once, got label {truth.indices[twice]} twice for text "
            f"{kept[true_text[twice]]} (counted from 0); merge such lists with longtail.scores.combine.combine"
        )
    hit_text, hit_place = np.nonzero(is_true)
    rarest_first = np.lexsort((counts[truth.indices], true_text))
    return Judged(
        n_texts=len(truth),
        n_texts_without_labels=n_without,
        labels=predicted.labels,
        scores=predicted.scores,
        train_counts=counts,
        n_train_texts=n_train_texts,
        label_bands=np.append(_bands(counts), np.int8(-1)),
        true_text=true_text,
        true_label=truth.indices[rarest_first],
        hit_text=hit_text,
        hit_place=hit_place,
        hit_label=predicted.labels[hit_text, hit_place],
    )


def _look_up(
    labels: NDArray[np.int32], true_text: NDArray[np.int64], true_label: NDArray[np.int32], n_labels: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which predicted labels are true, (n_texts, width), and their places among the true ones, (n_hits,)."""
    true_keys = true_text * n_labels + true_label  # ascending: rows of a LabelMatrix are sorted
    keys = np.arange(len(labels))[:, None] * n_labels + labels
    nearest = np.minimum(np.searchsorted(true_keys, keys), len(true_keys) - 1)
    is_true = np.asarray((true_keys[nearest] == keys) & (labels != NO_LABEL), bool)
    return is_true, nearest[is_true]


def _bands(counts: NDArray[np.int64]) -> NDArray[np.int8]:
    """Return the place in BANDS of each label."""
    return (len(_FEWEST_TEXTS) - np.searchsorted(_FEWEST_TEXTS[::-1], counts, side="right")).astype(np.int8)
