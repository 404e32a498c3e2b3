"""Weights of the children of one cluster → a chunk, and the chunks of all clusters → a Layer.

    Piece  (feature, child, weight) of some children, and their biases
    chunk  the arrays that `kernels.reference.beam` describes, for one cluster

Weights become whole numbers of 16 bits with a scale a child.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.kernels.native.lanes import LANES
from longtail.labels.index import Level
from longtail.linear.layer import MAX_CHILDREN, Layer

_QUANTA = 32767


@dataclass(frozen=True, eq=False)
class Piece:
    """Weights of some neighbouring children of one cluster: at most `LANES` of them by feature, more in any order."""

    feature: NDArray[np.int32]
    child: NDArray[np.uint16]  # place in the cluster
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]  # (n_children of this piece,)


def check_widths(level: Level) -> None:
    """Places in a cluster are numbers of 16 bits."""
    widest = int(np.diff(level.child_ptr).max(initial=0))
    if widest > MAX_CHILDREN:
        raise ConfigError(
            f"a cluster may have {MAX_CHILDREN:,} children at most, got {widest:,}; use tree.n_levels >= 1"
        )


def chunk_of(pieces: list[Piece]) -> dict[str, NDArray[Any]]:
    """Put the pieces of a cluster together: entries by feature, weights as whole numbers with a scale a child."""
    feature = np.concatenate([piece.feature for piece in pieces])
    child = np.concatenate([piece.child for piece in pieces])
    weight = np.concatenate([piece.weight for piece in pieces])
    bias = np.concatenate([piece.bias for piece in pieces])
    if len(bias) > LANES:
        order = np.argsort(feature, kind="stable")
        feature, child, weight = feature[order], child[order], weight[order]
    largest = np.zeros(len(bias), np.float32)
    np.maximum.at(largest, child, np.abs(weight))
    scale = np.where(largest > 0, largest / _QUANTA, 1).astype(np.float32)
    starts = np.flatnonzero(np.diff(feature, prepend=-1))
    return {
        "scale": scale,
        "bias": bias,
        "n_rows": np.array([len(starts)]),
        "n_entries": np.array([len(feature)]),
        "row_feature": feature[starts].astype(np.int32),
        "row_entry": _narrow(np.append(starts, len(feature)), np.uint16, np.uint32),
        "entry_child": _narrow(child, np.uint8, np.uint16),
        "entry_value": np.rint(weight / scale[child]).astype(np.int16),
    }


def layer_of(level: Level, chunks: Mapping[str, NDArray[Any]]) -> Layer:
    """The chunks of all clusters of a level, one after the other, as a Layer."""
    return Layer(
        child_ptr=level.child_ptr,
        children=level.children,
        scale=chunks["scale"],
        bias=chunks["bias"],
        row_ptr=_pointer(chunks["n_rows"]),
        row_feature=chunks["row_feature"],
        entry_base=_pointer(chunks["n_entries"]),
        row_entry=chunks["row_entry"],
        entry_child=chunks["entry_child"],
        entry_value=chunks["entry_value"],
    )


def _narrow(numbers: NDArray[Any], *types: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """In the smallest type that holds all: these numbers are a third of a model. Joined with wider ones, they widen."""
    return numbers.astype(next(kind for kind in types if numbers.max(initial=0) <= np.iinfo(kind).max))


def _pointer(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
