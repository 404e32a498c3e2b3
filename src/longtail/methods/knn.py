"""k nearest neighbours: the nearest training texts, by TF-IDF or word vectors, vote for their labels.

Only the vectors of the training texts are computed; nothing else is learned. It is a baseline that every other method
should beat, it shows whether texts with the same labels are near each other at all, and it finds test texts that leaked
into training.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from pydantic import Field, PositiveInt

from longtail.data.dataset import Split, Texts
from longtail.errors import MissingExtraError
from longtail.explain.attribution import Attribution
from longtail.explain.explanation import Example
from longtail.explain.words import TextWords
from longtail.kernels.rows import Rows
from longtail.linear.resources import pool_bytes
from longtail.methods.base import METHODS, Method, MethodOptions, ResourceEstimate
from longtail.methods.calibrated import MOST_ASKED, Unseen
from longtail.neighbours import NO_TEXT, Neighbours, Search
from longtail.neighbours.text_pool import TextPool, TextPoolOptions
from longtail.neighbours.vote import vote
from longtail.persist import Folder, FolderWriter
from longtail.run.progress import SILENT, Progress
from longtail.run.run import Run
from longtail.scores.calibrate import LIST_LENGTH
from longtail.scores.new_labels import of_unit_length
from longtail.text.readings import TextReadings
from longtail.types import TopK

if TYPE_CHECKING:
    from longtail.methods.keywords import KNNKeywords


_BASE = 220 << 20
"""Memory of Python and its libraries."""


class KNNOptions(MethodOptions, TextPoolOptions):
    """Options of k nearest neighbours."""

    n_neighbours: PositiveInt = 30
    """How many of the nearest training texts vote."""
    power: float = Field(3.0, ge=0)
    """A vote counts the neighbour's cosine similarity to this power: 0 gives all the same weight, more favours the
    nearest."""


@METHODS.register("knn")
class KNN(Method):
    """The labels of the nearest training texts, by vote: no training, a baseline and a detector of leaks.

    For example:

        model = longtail.KNN(n_neighbours=10).fit(["a red apple", "a grey stone"] * 3, [["fruit"], ["rock"]] * 3)
        model.neighbours(["an apple"], n=1).texts          row numbers of the nearest training texts
    """

    options_class = KNNOptions
    lists_come_from = "the nearest training texts"
    reads_features = True
    text_options = ("points",)

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[KNNKeywords]) -> None: ...

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.pool_ = TextPool.fit(split, self.options, seed=self.options.seed, run=run, search=self._search)[0]

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        spans = self.pool_.nearest(texts.table, texts.features, run)
        return TopK.stack([vote(neighbours, self.pool_.labels, self.options.power, k) for neighbours in spans])

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        near, cosines = (rows[0].tolist() for rows in self.neighbours(texts, run=run))
        labels = self.pool_.labels
        pairs = (pair for pair in zip(near, cosines, strict=True) if pair[0] != NO_TEXT and label in labels[pair[0]])
        nearest = tuple(Example(text, cosine) for text, cosine in pairs)
        return replace(self._occlusion(words, label, run), nearest=nearest)

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        if not self.pool_.points.reads_texts:
            return None
        points = self.pool_.points.of(texts.table, texts.features, run)
        return points.matrix() if isinstance(points, Rows) else of_unit_length(points)

    def _unseen(self, split: Split, texts: TextReadings, run: Run) -> Unseen:
        """Return lists of training texts by the votes of all others."""
        rows = np.sort(self._drawn(len(split))[:MOST_ASKED])
        some, n = texts.take(rows), self.options.n_neighbours
        spans = self.pool_.nearest(some.table, some.features, run, n=n + 1)
        nearest = Neighbours(*(np.concatenate(arrays) for arrays in zip(*spans, strict=True)))
        return Unseen(rows, vote(nearest.without(rows), self.pool_.labels, self.options.power, LIST_LENGTH))

    def neighbours(
        self,
        texts: Split | Texts | TextReadings,
        n: int | None = None,
        *,
        leave_out: bool = False,
        run: Run | None = None,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> Neighbours:
        """Return the row numbers of the `n` nearest training texts of each text; by default as many as vote.

        `leave_out` skips training texts with the same content: a training text then finds neither itself nor copies.
        """
        self._check_fitted()
        readings, run = TextReadings.of(texts), Run.of(run, threads, progress)
        spans = self.pool_.nearest(readings.table, readings.features, run, n=n, leave_out=leave_out)
        return Neighbours(*(np.concatenate(arrays) for arrays in zip(*spans, strict=True)))

    @property
    def _search(self) -> Search | None:
        """Search on the GPU for dense vectors, where there is one and torch is installed."""
        if not self.options.dense:
            return None
        try:
            from longtail.nn.nearest import search_for
        except MissingExtraError:
            return None
        return search_for(self.options)

    def _save(self, writer: FolderWriter) -> None:
        self.pool_.save(writer)

    def _open(self, folder: Folder) -> None:
        self.pool_ = TextPool.load(folder, self.options, len(self.scored_labels_), self._search)

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` will take; with `measure` also how long, from training on a sample."""
        pool = pool_bytes(split, self.options)
        sparse, dense = "points.features.blocks.*.max_features", "points.vectors.width or points.words.max_words"
        how_to_shrink = dense if self.options.dense else sparse
        memory = {"texts": split.texts.nbytes, "points": 3 * pool, "pool": pool, "programs": _BASE}
        seconds = self._seconds_by_sample(split, threads) if measure else None
        return ResourceEstimate(sum(memory.values()), pool, how_to_shrink, seconds=seconds, parts=tuple(memory.items()))

    def describe(self) -> dict[str, Any]:
        """Return the number of features that texts are compared by."""
        return {"n_features": self.pool_.points.width}
