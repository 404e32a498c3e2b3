"""Copies of an encoder in lower precision, which predict with less time and memory.

    bf16   all weights and states in bfloat16: for GPUs, and for CPUs that multiply bfloat16; others get slower
    int8   weights of linear layers in one byte (with one scale per row), states in one byte while they are multiplied:
           for CPUs; lists change more than with bf16 (docs/tasks/scale.md)

The weights of labels keep their precision: scores change only through small changes of the text vectors.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import nn

from longtail.errors import ConfigError
from longtail.nn.encoders.base import Encoder
from longtail.run.run import Precision


def resolve_precision(wanted: Precision, device: torch.device) -> Precision:
    """Return the precision to use on a device: `auto` is bf16 on a GPU and fp32 on a CPU."""
    if wanted == "int8" and device.type != "cpu":
        raise ConfigError("precision must be auto, bf16 or fp32 on a GPU, got int8, which is for CPUs")
    if wanted == "auto":
        return "fp32" if device.type == "cpu" else "bf16"
    return wanted


def quantised(encoder: Encoder, precision: Precision) -> Encoder:
    """Return a copy of an encoder in another precision."""
    return _LIGHTER[precision](encoder)


def _bf16(encoder: Encoder) -> Encoder:
    return copy.deepcopy(encoder).to(torch.bfloat16)


def _int8(encoder: Encoder) -> Encoder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that this will move to another package
        by_row = {nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        copied: Encoder = torch.ao.quantization.quantize_dynamic(encoder, by_row, dtype=torch.qint8)
    return copied


_LIGHTER: dict[str, Callable[[Encoder], Encoder]] = {"bf16": _bf16, "int8": _int8}
