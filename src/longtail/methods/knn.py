"""The labels of the nearest training texts, by vote: TF-IDF or word vectors → nearest texts → labels.

Nothing is learned but the points. It is a baseline that every other method should beat, it shows whether texts with the
same labels are near each other at all, and it tells what a model gains that is shown the labels of a text's neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveInt

from longtail.data.dataset import Split, Texts, as_table
from longtail.engines.local import LocalEngine
from longtail.errors import MissingExtraError
from longtail.labels.text_pool import TextPool, TextPoolOptions
from longtail.linear.needs import pool_bytes
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.neighbours import Neighbours, Search
from longtail.neighbours.vote import vote
from longtail.persist import Folder, FolderWriter
from longtail.progress import SILENT, Progress
from longtail.run import Run
from longtail.types import TopK

_TRIED = 2000
"""Texts that time is measured on."""
_BASE = 220 << 20
"""Python and its libraries."""


class KNNOptions(MethodOptions, TextPoolOptions):
    """Options of the vote of neighbours."""

    n_neighbours: PositiveInt = 30
    """So many of the nearest training texts vote."""
    power: float = Field(3.0, ge=0)
    """A neighbour's vote weighs its cosine to this power: 0 counts all alike, more listens to the nearest."""


@METHODS.register("knn")
class KNN(Method):
    """The labels of the nearest training texts, by vote: no training, a baseline and a detector of leaks."""

    name = "knn"
    options_class = KNNOptions
    reads_features = True

    def _fit(self, split: Split, run: Run) -> None:
        self.pool_ = TextPool.fit(split, self.options, self.options.seed, run, self._search)[0]

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        found = self.pool_.nearest(texts, features, run)
        return TopK.stack([vote(part, self.pool_.labels, self.options.power, k) for part in found])

    def neighbours(
        self,
        texts: Split | Texts,
        n: int | None = None,
        *,
        leave_out: bool = False,
        threads: int | None = None,
        progress: Progress = SILENT,
    ) -> Neighbours:
        """The n nearest training texts (by number) of each text; by default as many as vote.

        `leave_out` leaves out those of the same content: training texts then find neither themselves nor copies.
        """
        self._check_fitted()
        given = (texts.texts, texts.features) if isinstance(texts, Split) else (as_table(texts), None)
        run = Run(LocalEngine(threads), progress)
        parts = self.pool_.nearest(*given, run, n, leave_out)
        return Neighbours(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    @property
    def _search(self) -> Search | None:
        """The GPU for dense points, where there is one and torch to use it."""
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
        self.pool_ = TextPool.load(folder, self.options, len(self.vocabulary_), self._search)

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`."""
        return {"points": cls.options_class.of(options, source=cls.name).points.reading(fields)}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return tuple(self.options.points.columns)

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """See `Method.optional_columns`."""
        return tuple(self.options.points.optional_columns)

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        pool, n = pool_bytes(split, self.options), len(split)
        sparse, dense = "points.features.blocks.*.max_features", "points.vectors.width or points.words.max_words"
        relief = dense if self.options.dense else sparse
        parts = {"texts": split.texts.nbytes, "points": 3 * pool, "pool": pool, "programs": _BASE}
        seconds = None
        if measure:
            new = self.from_options(self.options.plain())
            some = split.take(np.linspace(0, n - 1, min(n, _TRIED)).astype(np.int64))
            new.fit(some, threads=threads)  # compiles, or loads, what was not used yet in this process
            start = time.perf_counter()
            new.fit(some, threads=threads)
            seconds = (time.perf_counter() - start) * n / len(some)
        return Needs(sum(parts.values()), pool, relief, seconds=seconds, parts=tuple(parts.items()))

    def describe(self) -> dict[str, Any]:
        """Numbers that texts are compared by."""
        return {"n_features": self.pool_.points.width}
