"""The teacher: finds the label scope of texts, from a pool of training texts, their labels and the parents of these.

    Teacher.fit(split, …)        ->  the teacher, and the scopes of the training texts
    teacher.scope(texts, …)      ->  the scopes of other texts

In training, neither a text nor a copy of it is its own neighbour, or it would be shown its own labels. Texts that are
held out for validation are not neighbours of others until training is over; then they join the pool
(docs/methods/treaderxml.md#teacher). Texts that have nothing in common are no neighbours.
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
from longtail.neighbours import NO_TEXT, NeighbourIndex, Neighbours, Points, Search
from longtail.neighbours.scope import LabelParents, Scope, ScopeOptions, parents_of, scope_of
from longtail.neighbours.text_pool import TextPool, TextPoolOptions
from longtail.neighbours.vote import votes_of
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.types import LabelMatrix

_SHARPNESS = 20.0
"""Factor of a label's share of the votes inside the logarithm."""
_PARENTS = "parents"


class TeacherOptions(ScopeOptions, TextPoolOptions):
    """Which neighbours a text has, and which of their labels make its scope."""

    n_neighbours: PositiveInt = 30
    """The nearest texts whose labels are taken. The paper does not say how many; 5 in its presets is our choice."""
    votes: NonNegativeFloat = 3.0
    """How much the logit of a label rises with the share of the neighbours' votes that it has: by votes · log(1 + 20 ·
    share). At 0 neighbours' labels are read but not counted, as in the paper."""
    vote_power: NonNegativeFloat = 3.0
    """A neighbour's vote weighs its cosine to this power."""


class Teacher:
    """A pool of training texts, and the parents of their labels."""

    def __init__(self, options: TeacherOptions, pool: TextPool, hierarchy: LabelParents) -> None:
        self.options, self.pool, self.hierarchy = options, pool, hierarchy

    @classmethod
    def fit(
        cls,
        split: Split,
        options: TeacherOptions,
        kept: NDArray[np.int64],
        *,
        seed: int = 0,
        run: Run | None = None,
        search: Search | None = None,
    ) -> tuple[Teacher, Scope]:
        """Return a teacher with all of `split` as its pool, and the scopes of its texts by the `kept` ones alone.

        Copies of a text are left out of its own scope.
        """
        run = run or Run()
        pool, points, hashes = TextPool.fit(split, options, seed=seed, run=run, search=search)
        hierarchy = parents_of(split.vocabulary, split.labels.take(kept), options)

        def find() -> dict[str, NDArray[Any]]:
            index = pool.index
            if len(kept) < len(split):
                index = NeighbourIndex.build(_taken(points, kept), hashes[kept], options.search)
            return index.nearest(points, options.n_neighbours, hashes, run=run, search=search)._asdict()

        neighbours = Neighbours(**run.stages.arrays("neighbours", find)[0])
        return cls(options, pool, hierarchy), _scope(neighbours, split.labels.take(kept), hierarchy, options)

    def scope(self, texts: pa.Table, features: Any | None, run: Run) -> Scope:
        """Return the scopes of texts that are not in the pool."""
        spans = self.pool.nearest(texts, features, run)
        return Scope.stack([_scope(some, self.pool.labels, self.hierarchy, self.options) for some in spans])

    def save(self, writer: FolderWriter) -> None:
        """Write into a model folder."""
        self.pool.save(writer)
        writer.arrays(_PARENTS, self.hierarchy.arrays())

    @classmethod
    def load(
        cls, folder: Folder, options: TeacherOptions, vocabulary: Vocabulary, search: Search | None = None
    ) -> Teacher:
        """Open what `save` wrote."""
        pool = TextPool.load(folder, options, len(vocabulary), search)
        return cls(options, pool, LabelParents.from_arrays(folder.arrays(_PARENTS), vocabulary))


def _scope(neighbours: Neighbours, labels: LabelMatrix, hierarchy: LabelParents, options: TeacherOptions) -> Scope:
    """Return the scope by neighbours that have terms in common with the text; `labels` are those of the pool."""
    scope = scope_of(np.where(neighbours.cosines > 0, neighbours.texts, NO_TEXT), labels, hierarchy, options)
    if not options.votes:
        return scope
    votes = votes_of(neighbours, labels, options.vote_power)
    votes.data = options.votes * np.log1p(_SHARPNESS * votes.data)
    return replace(scope, votes=votes)


def _taken(points: Points, rows: NDArray[np.int64]) -> Points:
    return Rows.of(points.matrix()[rows]) if isinstance(points, Rows) else points[rows]
