"""Weights of the children of a cluster become a chunk; the chunks of all clusters become a Layer.

    ChildWeights  (feature, child, weight) of some children of one cluster, and their biases
    chunk         the arrays that `kernels.reference.beam` describes, for one cluster

Weights become whole numbers of 16 bits with a scale per child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longtail.errors import ConfigError
from longtail.kernels.native.lanes import LANES
from longtail.labels.index import Level
from longtail.linear.layer import MAX_CHILDREN, Layer
from longtail.mapped_arrays import Arrays

_QUANTA = 32767


@dataclass(frozen=True, eq=False)
class ChildWeights:
    """Weights of neighbouring children of one cluster; those of up to `LANES` children are sorted by feature."""

    feature: NDArray[np.int32]
    child: NDArray[np.uint8 | np.uint16]  # place among these children
    weight: NDArray[np.float32]
    bias: NDArray[np.float32]  # (n_children,)


def check_widths(level: Level) -> None:
    """Raise if a cluster is too wide: places in a cluster are numbers of 16 bits."""
    widest = int(np.diff(level.child_ptr).max(initial=0))
    if widest > MAX_CHILDREN:
        raise ConfigError(
            f"a cluster may have {MAX_CHILDREN:,} children at most, got {widest:,}; use tree.n_levels >= 1"
        )


def chunk_of(weights: ChildWeights) -> dict[str, NDArray[Any]]:
    """Return the chunk of these children: entries by feature, weights as whole numbers with a scale per child."""
    feature, child, weight = weights.feature, weights.child, weights.weight
    if len(weights.bias) > LANES:
        order = np.argsort(feature, kind="stable")
        feature, child, weight = feature[order], child[order], weight[order]
    largest = np.zeros(len(weights.bias), np.float32)
    np.maximum.at(largest, child, np.abs(weight))
    scale = np.where(largest > 0, largest / _QUANTA, 1).astype(np.float32)
    value = np.rint(weight / scale[child]).astype(np.int16)
    return {"scale": scale, "bias": weights.bias, **_entries(feature, child, value)}


def join_chunks(chunks: Sequence[Arrays]) -> Arrays:
    """Return the chunk of a cluster from the chunks of its first children, the next ones, and so on."""
    if len(chunks) == 1:
        return chunks[0]
    before = np.cumsum([0, *(len(chunk["bias"]) for chunk in chunks)])
    feature = np.concatenate([np.repeat(chunk["row_feature"], np.diff(chunk["row_entry"])) for chunk in chunks])
    child = np.concatenate([chunk["entry_child"] + first for chunk, first in zip(chunks, before, strict=False)])
    scale, bias, value = (np.concatenate([chunk[key] for chunk in chunks]) for key in ("scale", "bias", "entry_value"))
    order = np.argsort(feature, kind="stable")
    return {"scale": scale, "bias": bias, **_entries(feature[order], child[order], value[order])}


def layer_of(level: Level, chunks: Arrays) -> Layer:
    """Return the chunks of all clusters of a level, one after the other, as a Layer."""
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


def _entries(feature: NDArray[Any], child: NDArray[Any], value: NDArray[np.int16]) -> dict[str, NDArray[Any]]:
    """Return the entries of a chunk, which come by feature, with one row per feature."""
    starts = np.flatnonzero(np.diff(feature, prepend=-1))
    return {
        "n_rows": np.array([len(starts)]),
        "n_entries": np.array([len(feature)]),
        "row_feature": feature[starts].astype(np.int32),
        "row_entry": _narrow(np.append(starts, len(feature)), np.uint16, np.uint32),
        "entry_child": _narrow(child, np.uint8, np.uint16),
        "entry_value": value,
    }


def _narrow(numbers: NDArray[Any], *types: type[np.unsignedinteger[Any]]) -> NDArray[Any]:
    """Return the numbers in the smallest type that holds all of them: they are a third of a model."""
    return numbers.astype(next(kind for kind in types if numbers.max(initial=0) <= np.iinfo(kind).max))


def _pointer(sizes: NDArray[Any]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
