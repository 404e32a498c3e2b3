"""One level of linear classifiers: margins of the children of chosen clusters.

The weights lie in chunks, one a cluster, as `kernels.reference.beam` describes. They are whole numbers of
16 bits with a scale a child: half the room of floats, and a rounding error below 1/65,000 of a child's
largest weight.

    best(texts, clusters (n, b), scores (n, b), k)  ->  children (n, k), scores (n, k)
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.kernels.native.beam import chunk_margins, chunk_margins_few, keep_best
from longtail.kernels.rows import Rows

FEW_TEXTS = 16
"""Up to this many texts, rows are found by search instead of by a table."""
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
    row_entry: NDArray[np.uint16 | np.uint32]  # (n_rows + n_clusters,) relative to entry_base, one end a cluster
    entry_child: NDArray[np.uint8 | np.uint16]  # (n_entries,) place inside the cluster
    entry_value: NDArray[np.int16]  # (n_entries,) times scale

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
        """The k best children of each text's clusters by weight · cluster score + log score of the margin."""
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
        """Children that b clusters have together, at most."""
        return int(np.sort(np.diff(self.child_ptr))[::-1][:b].sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """For storing."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Layer:
        """From what `arrays` gave."""
        return cls(**arrays)
