"""One level of linear classifiers: margins of the children of chosen clusters.

The weights lie in chunks, one per cluster, as `kernels.reference.beam` describes. They are whole numbers of
16 bits with a scale per child: half the memory of floats, and a rounding error below 1/65,000 of a child's
largest weight.

    best(texts, clusters (n, b), scores (n, b), k)  ->  children (n, k), scores (n, k)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.kernels.native.beam import chunk_margins, chunk_margins_few, keep_best
from longtail.kernels.rows import Rows
from longtail.mapped_arrays import Arrays
from longtail.persist import Folder
from longtail.sparse import sp
from longtail.structure import Structure

FEW_TEXTS = 4
"""Up to this many texts, features are looked up by binary search instead of in a table."""
MAX_CHILDREN = 1 << 16


@dataclass(frozen=True, eq=False)
class Layer:
    """Chunked weights of one level."""

    child_ptr: NDArray[np.int64]  # (n_clusters + 1,)
    children: NDArray[np.int32]  # (n_children,) grouped by cluster
    scale: NDArray[np.float32]  # (n_children,) by place in `children`, like bias
    bias: NDArray[np.float32]  # (n_children,)
    row_ptr: NDArray[np.int64]  # (n_clusters + 1,)
    row_feature: NDArray[np.int32]  # (n_rows,) sorted in each cluster
    entry_base: NDArray[np.int64]  # (n_clusters + 1,)
    row_entry: NDArray[np.uint16 | np.uint32]  # (n_rows + n_clusters,) relative to entry_base, with one end per cluster
    entry_child: NDArray[np.uint8 | np.uint16]  # (n_entries,) place inside the cluster
    entry_value: NDArray[np.int16]  # (n_entries,) times scale

    @property
    def n_clusters(self) -> int:
        """Clusters above the children."""
        return len(self.child_ptr) - 1

    @property
    def n_weights(self) -> int:
        """Weights kept after pruning."""
        return len(self.entry_value)

    def best(
        self,
        texts: Rows,
        clusters: NDArray[np.int32],
        scores: NDArray[np.float32],
        k: int,
        weight: float = 1.0,
        power: int = 3,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the k best children (n, k) of each text's clusters, and their scores (n, k).

        `clusters` (n, b) and their log `scores` (n, b) have −1 where a text has fewer. The score of a child is `weight`
        times that of its cluster plus the log score of its margin by `power`.
        """
        sizes = np.where(clusters >= 0, np.diff(self.child_ptr)[clusters], 0)  # (n, b)
        ends = np.cumsum(sizes.ravel())
        offsets = (ends - sizes.ravel()).reshape(clusters.shape)
        margins = np.empty(ends[-1] if len(ends) else 0, np.float32)
        compute = chunk_margins_few if len(texts) <= FEW_TEXTS else chunk_margins
        compute(
            texts.indptr, texts.indices, texts.values, clusters, offsets, self.child_ptr, self.scale, self.bias,
            self.row_ptr, self.row_feature, self.entry_base, self.row_entry, self.entry_child, self.entry_value,
            texts.n_columns, margins,
        )  # fmt: skip
        best, best_scores = np.empty((len(texts), k), np.int32), np.empty((len(texts), k), np.float32)
        keep_best(
            clusters, scores, offsets, self.child_ptr, self.children, margins,
            np.float32(weight), power, best, best_scores,
        )  # fmt: skip
        return best, best_scores

    def widest(self, b: int) -> int:
        """Return how many children b clusters have together, at most."""
        return int(np.sort(np.diff(self.child_ptr))[::-1][:b].sum())

    def matrix(self, n_columns: int) -> sp.csr_matrix:
        """Return the weights (n_children, n_columns) of all children in their order, without their biases."""
        sizes = np.diff(self.row_ptr)  # (n_clusters,) rows of each
        ends = np.cumsum(sizes + 1) - 1  # the ends of clusters in `row_entry` begin no row
        n_entries = np.delete(np.append(np.diff(self.row_entry.astype(np.int64)), 0), ends)
        cluster = np.repeat(np.arange(self.n_clusters), sizes)  # (n_rows,)
        place = np.repeat(self.child_ptr[cluster], n_entries) + self.entry_child
        feature = np.repeat(self.row_feature, n_entries)
        weights = self.entry_value * self.scale[place]
        return sp.csr_matrix((weights, (self.children[place], feature)), shape=(len(self.children), n_columns))

    def biases(self) -> NDArray[np.float32]:
        """Return the bias of each child, (n_children,)."""
        biases = np.empty(len(self.children), np.float32)
        biases[self.children] = self.bias
        return biases

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays to store."""
        return dict(vars(self))

    @classmethod
    def load(
        cls, folder: Folder, name: str, *, n_columns: int, n_above: int | None = None, n_children: int | None = None
    ) -> Layer:
        """Return the layer stored as `name`, for rows of `n_columns`; `n_above` clusters and `n_children` if given."""
        stored = Structure(folder.arrays(name), f"{folder.path / name}.safetensors")
        layer = cls.from_arrays(stored.arrays)
        n, n_above = len(layer.children), layer.n_clusters if n_above is None else n_above
        stored.numbers("children", np.int32, below=n, n=n_children)
        child_ptr = stored.pointers("child_ptr", to=n, n=n_above)
        for of_child in ("scale", "bias"):
            stored.finite(of_child, np.float32, shape=(n,))
        n_rows = len(stored.numbers("row_feature", np.int32, below=n_columns))
        ends = stored.pointers("row_ptr", to=n_rows, n=n_above)[1:] + np.arange(n_above)  # of clusters in `row_entry`
        n_entries = np.diff(stored.pointers("entry_base", to=len(layer.entry_value), n=n_above))
        row_entry = stored.array("row_entry", np.uint16, np.uint32, shape=(n_rows + n_above,))
        falls = np.flatnonzero(row_entry[1:] < row_entry[:-1])
        rises = np.isin(falls, ends, assume_unique=True).all() and (row_entry[ends] <= n_entries).all()
        stored.require("row_entry", bool(rises), "rise within each cluster, up to the number of its entries")
        stored.array("entry_value", np.int16, shape=(len(layer.entry_value),))
        child = stored.array("entry_child", np.uint8, np.uint16, shape=(len(layer.entry_value),))
        some = np.flatnonzero(n_entries)  # clusters that have entries
        highest = np.maximum.reduceat(child, layer.entry_base[some]) if len(some) else child
        stored.require("entry_child", bool((highest < np.diff(child_ptr)[some]).all()), "be children of their cluster")
        return layer

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Layer:
        """Return the layer of which `arrays` gave these."""
        return cls(**arrays)
