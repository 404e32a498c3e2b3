"""The labels of the nearest training texts, by vote: TF-IDF or word vectors → nearest texts → labels.

Nothing is learned but the points. It is a baseline that every other method should beat, it shows whether texts with the
same labels are near each other at all, and it tells what a model gains that is shown the labels of a text's neighbours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import Field, PositiveInt

from longtail.data.dataset import Split, Texts, as_table
from longtail.engines.local import LocalEngine
from longtail.errors import MissingExtraError
from longtail.linear.needs import terms_per_text
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.neighbours import NeighbourIndex, Neighbours, Search, SearchOptions
from longtail.neighbours.vote import vote
from longtail.persist import Folder, FolderWriter
from longtail.progress import SILENT, Progress
from longtail.run import Run
from longtail.text.points import AnyPointOptions, TfidfPointOptions, WordPointOptions, fit_points, load_points
from longtail.text.vectors import DEFAULT_WIDTH
from longtail.types import LabelMatrix, TopK

_AT_ONCE = 1 << 13
"""Texts whose points are held at once in use."""
_TRIED = 2000
"""Texts that time is measured on."""
_BASE = 220 << 20
"""Python and its libraries."""


class KNNOptions(MethodOptions):
    """Options of the vote of neighbours."""

    n_neighbours: PositiveInt = 30
    """So many of the nearest training texts vote."""
    power: float = Field(3.0, ge=0)
    """A neighbour's vote weighs its cosine to this power: 0 counts all alike, more listens to the nearest."""
    points: AnyPointOptions = TfidfPointOptions()
    """What texts are compared by: their terms (`tfidf`), or the mean of their words' vectors (`words`)."""
    search: SearchOptions = SearchOptions()
    """How the nearest texts are searched."""


@METHODS.register("knn")
class KNN(Method):
    """The labels of the nearest training texts, by vote: no training, a baseline and a detector of leaks."""

    name = "knn"
    options_class = KNNOptions
    reads_features = True

    def _fit(self, split: Split, run: Run) -> None:
        options: KNNOptions = self.options
        self.points_, made = fit_points(split, options.points, options.seed, run)

        def build() -> NeighbourIndex:
            with run.progress.step("copies"):
                hashes = self.points_.hashes(split.texts, made)
            with run.progress.step("pool"):
                return NeighbourIndex.build(made, hashes, options.search)

        self.index_: NeighbourIndex = run.stages.keep(
            "pool", build, lambda writer, index: writer.arrays("pool", index.arrays()), self._pool
        )[0]
        self.labels_ = split.labels

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        found = self._found(texts, features, self.options.n_neighbours, False, run)
        return TopK.stack([vote(part, self.labels_, self.options.power, k) for part in found])

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
        parts = self._found(*given, n or self.options.n_neighbours, leave_out, run)
        return Neighbours(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def _found(self, texts: pa.Table, features: Any | None, n: int, leave_out: bool, run: Run) -> Iterator[Neighbours]:
        """The nearest of some texts after the other."""
        quiet = replace(run, progress=SILENT)
        with run.progress.step("neighbours", len(texts), "texts") as advance:
            for start in range(0, max(len(texts), 1), _AT_ONCE):
                some = texts.slice(start, _AT_ONCE)
                points = self.points_.of(some, None if features is None else features[start : start + _AT_ONCE], quiet)
                hashes = self.points_.hashes(some, points) if leave_out else None
                yield self.index_.nearest(points, n, hashes, run.engine, search=self._search)
                advance(len(some))

    @cached_property
    def _search(self) -> Search | None:
        """The GPU for dense points, where there is one."""
        if not isinstance(self.options.points, WordPointOptions) or self.options.search.kind != "exact":
            return None
        try:
            from longtail.nn.nearest import gpu_search
        except MissingExtraError:
            return None
        return gpu_search()

    def _save(self, writer: FolderWriter) -> None:
        self.points_.save(writer, "points")
        writer.arrays("pool", self.index_.arrays())
        writer.arrays("votes", {"indptr": self.labels_.indptr, "indices": self.labels_.indices})

    def _open(self, folder: Folder) -> None:
        self.points_ = load_points(folder, "points", self.options.points)
        self.index_ = self._pool(folder)
        self.labels_ = LabelMatrix(**folder.arrays("votes"), n_labels=len(self.vocabulary_))

    def _pool(self, folder: Folder) -> NeighbourIndex:
        return NeighbourIndex.from_arrays(folder.arrays("pool"), self.options.search)

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
        options, n = self.options.points, len(split)
        if isinstance(options, WordPointOptions):
            width = 4 * (options.vectors.width or DEFAULT_WIDTH)
            pool, relief = n * width, "points.vectors.width or points.words.max_words"
        else:
            pool, relief = int(8 * terms_per_text(split, options.features) * n), "points.features.blocks.*.max_features"
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
        return {"n_features": self.points_.width}
