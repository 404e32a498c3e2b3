"""Approximate search among millions of dense points: the pool in lists, of which the nearest few are searched (faiss).

Lists (IVF: k-means, then plain vectors) rather than a graph (HNSW): they are built several times faster, do not depend
on the number of threads, store nothing beside the vectors, and one number, the lists that are searched, leads up to
the exact result (docs/methods/knn.md has figures). Which of equally near texts are found is faiss's choice where not
all fit.

To leave out copies of a text, as many more neighbours are asked for as it has copies in the pool, and then dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import MissingExtraError
from longtail.neighbours.base import Found, Neighbours, Query, Search
from longtail.neighbours.dense import checked, unit_length
from longtail.run.run import Run
from longtail.topk import top_k

_TEXTS_AT_ONCE = 1024
_PER_LIST = 39
"""Points per list at least: faiss warns below."""


class ListPool:
    """A faiss index of points of unit length."""

    def __init__(self, index: Any, n_probed: int) -> None:
        self.index = index
        self.index.nprobe = min(n_probed, index.nlist)

    @classmethod
    def of(cls, points: NDArray[Any], n_lists: int | None, n_probed: int) -> ListPool:
        """Return the pool of points of any length."""
        faiss, unit = _faiss(), unit_length(points)
        n_lists = n_lists or round(4 * len(unit) ** 0.5)
        n_lists = max(1, min(n_lists, len(unit) // _PER_LIST))
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(unit.shape[1]), unit.shape[1], n_lists, faiss.METRIC_INNER_PRODUCT)
        index.train(unit)
        index.add(unit)
        return cls(index, n_probed)

    @classmethod
    def from_bytes(cls, stored: NDArray[np.uint8], n_probed: int) -> ListPool:
        """Return the pool of which `arrays` gave this."""
        return cls(_faiss().deserialize_index(np.asarray(stored)), n_probed)

    def nearest(self, query: Query, run: Run, search: Search | None) -> Found:
        """Yield the neighbours of some points after the other; `search` is for pools that are compared as a whole."""
        faiss, n_pool = _faiss(), len(query.pool_groups)
        points = checked(query.points, self.index.d)
        sizes = np.append(np.bincount(query.pool_groups), 0)  # those without a group, −1, have no copies
        copies = sizes[query.groups]
        by_copies = np.argsort(copies, kind="stable")
        before = faiss.omp_get_max_threads()
        faiss.omp_set_num_threads(run.engine.n_local_threads)
        try:
            for start in range(0, len(points), _TEXTS_AT_ONCE):
                rows = by_copies[start : start + _TEXTS_AT_ONCE]
                groups = query.groups[rows, None]
                wanted = min(query.k + int(copies[rows].max()), n_pool)
                cosines, texts = self.index.search(unit_length(points[rows]), wanted)
                texts[(groups >= 0) & (query.pool_groups[texts] == groups)] = -1
                best = top_k(texts.astype(np.int32), np.where(texts < 0, -np.inf, cosines), query.k)
                yield rows, Neighbours(best.labels, best.scores)
        finally:
            faiss.omp_set_num_threads(before)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be stored."""
        return {"lists": _faiss().serialize_index(self.index)}


def _faiss() -> Any:
    try:
        import faiss
    except ImportError as error:
        raise MissingExtraError(
            "search.kind 'faiss' needs faiss, not installed here; install with pip install 'longtail[ann]'"
        ) from error
    return faiss
