"""Labels as JSON: what is the same in all answers is made once per label.

LabelJson(vocabulary).suggestions([3, 1], [0.9, 0.5])
    ->  [{"id":"…","name":"…","path":["…"],"score":0.9},{"id":"…",…}]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from longtail.data.arrow import int_array
from longtail.data.vocabulary import Vocabulary

_MOST_KEPT = 1 << 16


class LabelJson:
    """The labels of a vocabulary as JSON objects."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._tag: dict[int, bytes] = {}
        self._annif: dict[int, bytes] = {}

    def suggestions(self, labels: Sequence[int], scores: Sequence[float]) -> bytes:
        """Return labels with id, name, path and score."""
        return self._joined(self._tag, _tag_object, labels, scores)

    def annif_suggestions(self, labels: Sequence[int], scores: Sequence[float]) -> bytes:
        """Return labels with uri, label, notation and score, as Annif does."""
        return self._joined(self._annif, _annif_object, labels, scores)

    def _joined(
        self,
        kept: dict[int, bytes],
        make: Callable[[str, str, list[str]], bytes],
        labels: Sequence[int],
        scores: Sequence[float],
    ) -> bytes:
        missing = [label for label in labels if label not in kept]
        if missing:
            self._add(kept, make, missing)
        objects = [kept[label] + b"%.7g}" % score for label, score in zip(labels, scores, strict=True)]
        return b"[" + b",".join(objects) + b"]"

    def _add(self, kept: dict[int, bytes], make: Callable[[str, str, list[str]], bytes], labels: list[int]) -> None:
        """Make the objects of some labels, up to the score."""
        if len(kept) > _MOST_KEPT:
            kept.clear()
        rows = self.vocabulary.table.take(int_array(np.array(labels)))
        for label, id, name in zip(labels, rows["id"].to_pylist(), rows["name"].to_pylist(), strict=True):
            kept[label] = make(id, name, self.vocabulary.path(label))[:-1] + b',"score":'


def _tag_object(id: str, name: str, path: list[str]) -> bytes:
    return msgspec.json.encode({"id": id, "name": name, "path": path})


def _annif_object(id: str, name: str, path: list[str]) -> bytes:
    return msgspec.json.encode({"uri": id, "label": name, "notation": None})
