from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from longtail.linear.layer import Layer


@pytest.fixture(scope="session")
def dense_weights() -> Callable[[Layer, int], tuple[Any, Any]]:
    """Reads the chunks of a layer, as `kernels.reference.beam` describes them, into plain arrays."""
    return read_chunks


def read_chunks(layer: Layer, n_features: int) -> tuple[Any, Any]:
    """Weights (n_features, n_children) and biases (n_children,) by child id."""
    weights, bias = np.zeros((n_features, len(layer.children))), np.zeros(len(layer.children))
    for cluster in range(len(layer.child_ptr) - 1):
        first, last = layer.child_ptr[cluster], layer.child_ptr[cluster + 1]
        own = layer.children[first:last]
        bias[own] = layer.bias[first:last]
        for row in range(layer.row_ptr[cluster], layer.row_ptr[cluster + 1]):
            start, stop = (int(layer.entry_base[cluster]) + int(layer.row_entry[row + cluster + e]) for e in (0, 1))
            child = layer.entry_child[start:stop]
            values = layer.entry_value[start:stop] * layer.scale[first:last][child].astype(np.float64)
            weights[layer.row_feature[row], own[child]] = values
    return weights, bias
