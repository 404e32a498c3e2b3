"""The nearest of millions of dense points, nearly: the pool in lists, of which a text searches the nearest few (faiss).

Lists (IVF: k-means, then plain vectors) rather than a graph (HNSW): they are built several times faster, do not depend
on the number of threads, hold the vectors and nothing beside, and one number, the lists that are searched, leads up to
the exact result (docs/knn.md has figures). Which of equally near texts are found is faiss's choice where not all fit.

To leave out copies of a text, as many more neighbours are asked for as it has copies in the pool, and then dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.engines.local import LocalEngine
from longtail.errors import MissingExtraError
from longtail.neighbours.base import Neighbours, Search
from longtail.neighbours.dense import checked, unit_length
from longtail.progress import Advance
from longtail.topk import top_k

_TEXTS_AT_ONCE = 1024
_PER_LIST = 39
"""Points a list at least: faiss warns below."""


class ListPool:
    """A faiss index of points of unit length."""

    def __init__(self, index: Any, n_probed: int) -> None:
        self.index = index
        self.index.nprobe = min(n_probed, index.nlist)

    @classmethod
    def of(cls, points: NDArray[Any], n_lists: int | None, n_probed: int) -> ListPool:
        """From points of any length."""
        faiss, unit = _faiss(), unit_length(points)
        n_lists = n_lists or round(4 * len(unit) ** 0.5)
        n_lists = max(1, min(n_lists, len(unit) // _PER_LIST))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(unit.shape[1]), unit.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(unit)
        index.add(unit)
        return cls(index, n_probed)

    @classmethod
    def from_bytes(cls, stored: NDArray[np.uint8], n_probed: int) -> ListPool:
        """From what `arrays` gave."""
        return cls(_faiss().deserialize_index(np.asarray(stored)), n_probed)

    def nearest(
        self,
        points: Any,
        k: int,
        pool_groups: NDArray[np.int32],
        groups: NDArray[np.int32],
        engine: LocalEngine,
        advance: Advance,
        search: Search | None,
    ) -> Neighbours:
        """See `Pool.nearest`; `search` is for pools that are compared as a whole."""
        faiss, n_pool = _faiss(), len(pool_groups)
        points = checked(points, self.index.d)
        found = Neighbours.none(len(points), k)
        sizes = np.append(np.bincount(pool_groups), 0)  # those without a group, −1, have no copies
        copies = sizes[groups]
        by_copies = np.argsort(copies, kind="stable")
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(engine.n_threads)
        try:
            for start in range(0, len(points), _TEXTS_AT_ONCE):
                rows = by_copies[start : start + _TEXTS_AT_ONCE]
                wanted = min(k + int(copies[rows].max()), n_pool)
                cosines, texts = self.index.search(unit_length(points[rows]), wanted)
                texts[(groups[rows, None] >= 0) & (pool_groups[texts] == groups[rows, None])] = -1
                best = top_k(texts.astype(np.int32), np.where(texts < 0, -np.inf, cosines), k)
                found.texts[rows], found.cosines[rows] = best.labels, best.scores
                advance(len(rows))
        finally:
            faiss.omp_set_num_threads(before)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Pool.arrays`."""
        return {"lists": _faiss().serialize_index(self.index)}


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError(
            "search.kind 'faiss' needs faiss, not installed here; install with pip install 'longtail[ann]'"
        ) from error
    return faiss
