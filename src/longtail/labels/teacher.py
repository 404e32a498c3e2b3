"""Finds the label scope of texts: a pool of training texts, their labels, and the parents of these.

    Teacher.fit(split, …)        ->  the teacher, and the scopes of the training texts
    teacher.scope(texts, …)      ->  the scopes of other texts

Training texts look for neighbours as if they were not there: neither a text nor a copy of it is its own neighbour, or
it would be shown its own labels. Texts that are held out for validation are no neighbours of anyone until training is
over; then they join the pool (methods.md D.2). Texts that have nothing in common are no neighbours at all.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import PositiveInt

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.kernels.rows import Rows
from longtail.labels.scope import Hierarchy, Scope, ScopeOptions, parents_of, scope_of
from longtail.neighbours import NO_TEXT, NeighbourIndex, Neighbours, Points, Search, SearchOptions
from longtail.persist import Folder, FolderWriter
from longtail.progress import SILENT
from longtail.run import Run
from longtail.text.points import AnyPointOptions, TextPoints, TfidfPointOptions, fit_points, load_points
from longtail.types import LabelMatrix

_TEXTS_AT_ONCE = 1 << 13
"""Texts whose points are held at once in use."""
_POINTS, _POOL, _LABELS, _PARENTS = "points", "pool", "pool-labels", "parents"


class TeacherOptions(ScopeOptions):
    """Which neighbours a text has, and which of their labels make its scope."""

    n_neighbours: PositiveInt = 5
    """The nearest texts whose labels are taken."""
    points: AnyPointOptions = TfidfPointOptions()
    """What texts are compared by: TF-IDF, or the mean of word vectors as in the paper."""
    search: SearchOptions = SearchOptions()
    """How the nearest texts are searched."""


class Teacher:
    """A pool of training texts with their labels."""

    def __init__(
        self,
        options: TeacherOptions,
        points: TextPoints,
        index: NeighbourIndex,
        labels: LabelMatrix,
        hierarchy: Hierarchy,
    ) -> None:
        self.options, self.points, self.index = options, points, index
        self.labels, self.hierarchy = labels, hierarchy

    @classmethod
    def fit(
        cls,
        split: Split,
        options: TeacherOptions,
        kept: NDArray[np.int64],
        seed: int = 0,
        run: Run | None = None,
        search: Search | None = None,
    ) -> tuple[Teacher, Scope]:
        """With all of `split` as its pool; and the scopes of its texts by the `kept` ones alone, copies left out."""
        run = run or Run()
        points, rows = fit_points(split, options.points, seed, run)
        hashes = points.hashes(split.texts, rows)
        hierarchy = parents_of(split.vocabulary, split.labels.take(kept), options)
        index = NeighbourIndex.build(rows, hashes, options.search)

        def find() -> dict[str, NDArray[Any]]:
            all_kept = len(kept) == len(split)
            pool = index if all_kept else NeighbourIndex.build(_taken(rows, kept), hashes[kept], options.search)
            found = pool.nearest(rows, options.n_neighbours, hashes, run.engine, run.progress, search)
            return {"texts": _near(found)}

        found = run.stages.arrays("neighbours", find)[0]["texts"]
        scope = scope_of(found, split.labels.take(kept), hierarchy, options)
        return cls(options, points, index, split.labels, hierarchy), scope

    def scope(self, texts: pa.Table, features: Any | None, run: Run, search: Search | None = None) -> Scope:
        """The scopes of texts that are not of the pool."""
        parts = []
        with run.progress.step("neighbours", len(texts), "texts") as advance:
            quiet = replace(run, progress=SILENT)
            for start in range(0, max(len(texts), 1), _TEXTS_AT_ONCE):
                some = texts.slice(start, _TEXTS_AT_ONCE)
                own = None if features is None else features[start : start + _TEXTS_AT_ONCE]
                points = self.points.of(some, own, quiet)
                found = self.index.nearest(points, self.options.n_neighbours, engine=run.engine, search=search)
                parts.append(scope_of(_near(found), self.labels, self.hierarchy, self.options))
                advance(len(some))
        return Scope.stack(parts)

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder."""
        self.points.save(writer, _POINTS)
        writer.arrays(_POOL, self.index.arrays())
        writer.arrays(_LABELS, {"indptr": self.labels.indptr, "indices": self.labels.indices})
        writer.arrays(_PARENTS, self.hierarchy.arrays())

    @classmethod
    def load(cls, folder: Folder, options: TeacherOptions, vocabulary: Vocabulary) -> Teacher:
        """Open what `save` wrote."""
        points = load_points(folder, _POINTS, options.points)
        index = NeighbourIndex.from_arrays(folder.arrays(_POOL), options.search)
        labels = LabelMatrix(**folder.arrays(_LABELS), n_labels=len(vocabulary))
        return cls(options, points, index, labels, Hierarchy.from_arrays(folder.arrays(_PARENTS), vocabulary))


def _near(found: Neighbours) -> NDArray[np.int32]:
    """Neighbours that have anything in common with the text."""
    return np.where(found.cosines > 0, found.texts, NO_TEXT)


def _taken(points: Points, rows: NDArray[np.int64]) -> Points:
    return Rows.of(points.matrix()[rows]) if isinstance(points, Rows) else points[rows]
