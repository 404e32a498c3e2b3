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
from longtail.persist import Folder, FolderWriter
from longtail.run.log import LOG
from longtail.structure import Structure
from longtail.types import NO_LABEL

_FILE = "labels"


@dataclass(frozen=True, eq=False)
class ModelLabels:
    """All labels of a model."""

    vocabulary: Vocabulary
    train_counts: NDArray[np.int64]  # (n_labels,) training texts of each label
    scored: NDArray[np.int32]  # (n_scored,) the labels that the method can score, ascending
    n_train_texts: int

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder."""
        writer.table(_FILE, self.vocabulary.table)
        writer.arrays(_FILE, {"train_counts": self.train_counts, "scored": self.scored})
        writer.manifest["parent_names"] = dict(self.vocabulary.parent_names)

    @classmethod
    def load(cls, folder: Folder, n_train_texts: int) -> ModelLabels:
        """Open what `save` wrote."""
        vocabulary = Vocabulary.load(folder.table(_FILE), folder.manifest["parent_names"])
        n_labels = len(vocabulary)
        every_label = np.arange(n_labels, dtype=np.int32)  # format 1 keeps scored labels only
        stored = Structure({"scored": every_label, **folder.arrays(_FILE)}, f"{folder.path}, {_FILE}")
        counts = stored.numbers("train_counts", np.int64, below=n_train_texts + 1, n=n_labels)
        scored = stored.numbers("scored", np.int32, below=n_labels)
        stored.require("scored", len(scored) > 0 and bool((scored[1:] > scored[:-1]).all()), "be some labels in order")
        return cls(vocabulary, counts, scored, n_train_texts)


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
