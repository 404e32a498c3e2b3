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
from pydantic import NonNegativeFloat, PositiveInt

from longtail.data.dataset import Split
from longtail.data.vocabulary import Vocabulary
from longtail.kernels.rows import Rows
from longtail.labels.scope import Hierarchy, Scope, ScopeOptions, parents_of, scope_of
from longtail.neighbours import NO_TEXT, NeighbourIndex, Neighbours, Points, Search, SearchOptions
from longtail.neighbours.vote import votes_of
from longtail.persist import Folder, FolderWriter
from longtail.progress import SILENT
from longtail.run import Run
from longtail.text.points import AnyPointOptions, TextPoints, TfidfPointOptions, fit_points, load_points
from longtail.types import LabelMatrix

_TEXTS_AT_ONCE = 1 << 13
"""Texts whose points are held at once in use."""
_SHARPNESS = 20.0
"""How fast a small share of the votes counts."""
_POINTS, _POOL, _LABELS, _PARENTS = "points", "pool", "pool-labels", "parents"


class TeacherOptions(ScopeOptions):
    """Which neighbours a text has, and which of their labels make its scope."""

    n_neighbours: PositiveInt = 30
    """The nearest texts whose labels are taken; the paper's are 5."""
    votes: NonNegativeFloat = 3.0
    """How much the logit of a label rises with the share of the neighbours' votes that it has: by votes · log(1 + 20 ·
    share). At 0 neighbours' labels are read but not counted, as in the paper."""
    vote_power: NonNegativeFloat = 3.0
    """A neighbour's vote weighs its cosine to this power."""
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
            return {"texts": found.texts, "cosines": found.cosines}

        found = Neighbours(**run.stages.arrays("neighbours", find)[0])
        scope = _scope(found, split.labels.take(kept), hierarchy, options)
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
                parts.append(_scope(found, self.labels, self.hierarchy, self.options))
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


def _scope(found: Neighbours, labels: LabelMatrix, hierarchy: Hierarchy, options: TeacherOptions) -> Scope:
    """By neighbours that have anything in common with the text; `labels` are those of the pool."""
    made = scope_of(np.where(found.cosines > 0, found.texts, NO_TEXT), labels, hierarchy, options)
    if not options.votes:
        return made
    votes = votes_of(found, labels, options.vote_power)
    votes.data = options.votes * np.log1p(_SHARPNESS * votes.data)
    return replace(made, votes=votes)


def _taken(points: Points, rows: NDArray[np.int64]) -> Points:
    return Rows.of(points.matrix()[rows]) if isinstance(points, Rows) else points[rows]
