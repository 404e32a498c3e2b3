"""The label space of a model: the labels of the training data in their order, then all others that are known.

    Split, further vocabularies  ->  ModelLabels: vocabulary (n_labels), training texts, which labels are scored

Label i of the data is label i of the model, and column i of an indicator matrix. Most methods can score only labels
with training texts; they see these alone, numbered from 0 in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.errors import DataError
from longtail.run.log import LOG
from longtail.types import NO_LABEL


@dataclass(frozen=True, eq=False)
class ModelLabels:
    """All labels of a model."""

    vocabulary: Vocabulary
    train_counts: NDArray[np.int64]  # (n_labels,) training texts of each label
    scored: NDArray[np.int32]  # (n_scored,) the labels that the method can score, ascending
    n_train_texts: int


def with_seen_labels(split: Split) -> Split:
    """Return the split with only the labels that have a text, numbered from 0 in the same order."""
    frequency = split.labels.texts_per_label()
    seen = np.flatnonzero(frequency)
    new_id = np.full(len(frequency), NO_LABEL)
    new_id[seen] = np.arange(len(seen))
    return replace(split, labels=split.labels.renumber(new_id, len(seen)), vocabulary=split.vocabulary.take(seen))


def labels_of_model(split: Split, *others: Vocabulary | None) -> ModelLabels:
    """Return the labels of a model: those of the training data, then those that only `others` have."""
    vocabulary, counts = split.vocabulary, split.labels.texts_per_label()
    for other in others:
        vocabulary = vocabulary if other is None else vocabulary.followed_by(other)
    counts = np.append(counts, np.zeros(len(vocabulary) - len(counts), counts.dtype))
    return ModelLabels(vocabulary, counts, np.flatnonzero(counts).astype(np.int32), len(split))


def check_known(split: Split, labels: ModelLabels) -> None:
    """Raise if a model can score no label of the texts, and log a warning if it can score less than half of them."""
    used = [split.vocabulary.ids[label] for label in np.flatnonzero(split.labels.texts_per_label())]
    scored = labels.vocabulary.take(labels.scored)
    unknown = [label for label in used if label not in scored.position]
    if 2 * len(unknown) <= len(used):
        return
    words = f"{len(unknown):,} of {len(used):,} labels of the texts, such as {_some(unknown)}"
    its = f"labels that it learned are {_some(scored.ids)}"
    if len(unknown) == len(used):
        raise DataError(f"the model must know some labels of the texts, got {words}, which it does not; {its}")
    LOG.warning(f"the model does not know {words}: they count as missed; {its}")


def _some(labels: list[str]) -> str:
    return ", ".join(repr(label) for label in labels[:3])
