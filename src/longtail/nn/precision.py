"""Lighter copies of an encoder, for use: the same layers in numbers that take less time and memory.

    bf16   all weights and states in bfloat16: for GPUs, and for CPUs that multiply such numbers; others get slower
    int8   weights of linear layers in one byte (a scale a row), states in one byte while they are multiplied: for
           CPUs; lists change more than with bf16 (docs/scale.md)

Labels' weights are never touched: scores stay what they were but for small changes of a text's vector.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable

import torch
from torch import nn

from longtail.errors import ConfigError
from longtail.nn.encoders.base import Encoder
from longtail.run import Precision


def settled(wanted: Precision, device: torch.device) -> Precision:
    """The precision that `auto` means on a device."""
    if wanted == "int8" and device.type != "cpu":
        raise ConfigError("precision must be auto, bf16 or fp32 on a GPU, got int8, which is for CPUs")
    if wanted == "auto":
        return "fp32" if device.type == "cpu" else "bf16"
    return wanted


def lightened(encoder: Encoder, precision: Precision) -> Encoder:
    """A copy of an encoder in a lighter precision."""
    return _LIGHTER[precision](encoder)


def _bf16(encoder: Encoder) -> Encoder:
    return copy.deepcopy(encoder).to(torch.bfloat16)


def _int8(encoder: Encoder) -> Encoder:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that this will move to another package
        by_row = {nn.Linear: torch.ao.quantization.per_channel_dynamic_qconfig}
        made: Encoder = torch.ao.quantization.quantize_dynamic(encoder, by_row, dtype=torch.qint8)
    return made


_LIGHTER: dict[str, Callable[[Encoder], Encoder]] = {"bf16": _bf16, "int8": _int8}
