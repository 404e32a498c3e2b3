"""Convert tensors to the arrays that folders hold, and back.

numpy has no bfloat16: such tensors are stored bit for bit as int16 under a name with a suffix.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_BF16 = ":bfloat16"


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Return arrays on the host, which a folder can store."""
    arrays = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        if plain.dtype == torch.bfloat16:
            arrays[name + _BF16] = plain.view(torch.int16).numpy()
        else:
            arrays[name] = plain.numpy()
    return arrays


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Return the tensors that `to_arrays` was called with, without copying the arrays."""
    tensors = {}
    for name, array in arrays.items():
        tensor = torch.from_numpy(np.ascontiguousarray(array)).reshape(array.shape)  # keeps 0-d arrays 0-d
        tensors[name.removesuffix(_BF16)] = tensor.view(torch.bfloat16) if name.endswith(_BF16) else tensor
    return tensors
