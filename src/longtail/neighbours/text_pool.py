"""A pool of training texts with their labels, which is searched for the neighbours of other texts.

    TextPool.fit(split, …)        ->  the pool, the points of its texts, and their hashes
    pool.nearest(texts, …)        ->  the neighbours of some texts after the other

It is saved with a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import PositiveInt, model_validator

from longtail.data.dataset import Split
from longtail.neighbours import NeighbourIndex, Neighbours, NeighbourSearchOptions, Points, Search
from longtail.neighbours.points import (
    AnyPointOptions,
    TextPoints,
    TfidfPointOptions,
    WordPointOptions,
    fit_points,
    load_points,
)
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.progress import SILENT
from longtail.run.run import Run
from longtail.structure import Structure
from longtail.types import LabelMatrix

_POINTS, _POOL, _LABELS = "points", "pool", "pool-labels"


class TextPoolOptions(Options):
    """How texts are compared, and how many neighbours they have."""

    n_neighbours: PositiveInt = 30
    """Number of nearest training texts that are used."""
    points: AnyPointOptions = TfidfPointOptions()
    """What texts are compared by: their terms (`tfidf`), or the mean of their words' vectors (`words`)."""
    search: NeighbourSearchOptions = NeighbourSearchOptions()
    """How the nearest texts are searched."""

    @model_validator(mode="after")
    def _search_fits_points(self) -> Self:
        if self.search.kind == "faiss" and not self.dense:
            raise ValueError(
                "search.kind must be 'exact' where points are of kind 'tfidf', got 'faiss', which wants dense ones; "
                "choose points.kind 'words' with it"
            )
        return self

    @property
    def dense(self) -> bool:
        """Whether points are dense."""
        return isinstance(self.points, WordPointOptions)


@dataclass
class TextPool:
    """Training texts as points, with their labels."""

    options: TextPoolOptions
    points: TextPoints
    index: NeighbourIndex
    labels: LabelMatrix
    search: Search | None = None
    """Compares dense points on a GPU, if there is one."""
    at_once: int = 1 << 13
    """Texts whose points are held at once in prediction."""

    @classmethod
    def fit(
        cls, split: Split, options: TextPoolOptions, *, seed: int, run: Run, search: Search | None = None
    ) -> tuple[Self, Points, NDArray[np.uint64]]:
        """Return a pool of all texts of `split`, their points, and the hashes of their content."""
        text_points, points = fit_points(split, options.points, seed, run)
        with run.progress.step("copies"):
            hashes = text_points.hashes(split.texts, points)

        def build() -> NeighbourIndex:
            with run.progress.step("pool"):
                return NeighbourIndex.build(points, hashes, options.search)

        def read(folder: Folder) -> NeighbourIndex:
            return NeighbourIndex.from_arrays(folder.arrays(_POOL), text_points.width, options.search)

        index = run.stages.keep(_POOL, build, lambda writer, index: writer.arrays(_POOL, index.arrays()), read)[0]
        return cls(options, text_points, index, split.labels, search), points, hashes

    def nearest(
        self,
        texts: pa.Table,
        features: Any | None,
        run: Run,
        *,
        n: int | None = None,
        leave_out: bool = False,
    ) -> Iterator[Neighbours]:
        """Yield the n nearest of some texts after the other; `leave_out` those of the same content."""
        quiet = replace(run, progress=SILENT)
        with run.progress.step("neighbours", len(texts), "texts") as advance:
            for start in range(0, max(len(texts), 1), self.at_once):
                some = texts.slice(start, self.at_once)
                points = self.points.of(
                    some, None if features is None else features[start : start + self.at_once], quiet
                )
                hashes = self.points.hashes(some, points) if leave_out else None
                k = n or self.options.n_neighbours
                yield self.index.nearest(points, k, hashes, run=quiet, search=self.search)
                advance(len(some))

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder."""
        self.points.save(writer, _POINTS)
        writer.arrays(_POOL, self.index.arrays())
        writer.arrays(_LABELS, {"indptr": self.labels.indptr, "indices": self.labels.indices})

    @classmethod
    def load(cls, folder: Folder, options: TextPoolOptions, n_labels: int, search: Search | None = None) -> Self:
        """Open what `save` wrote."""
        points = load_points(folder, _POINTS, options.points)
        index = NeighbourIndex.from_arrays(folder.arrays(_POOL), points.width, options.search)
        stored = Structure(folder.arrays(_LABELS), f"{folder.path}, {_LABELS}")
        labels = stored.numbers("indices", np.int32, below=n_labels)
        ptr = stored.pointers("indptr", to=labels, n=len(index))
        return cls(options, points, index, LabelMatrix(ptr, labels, n_labels), search)
