"""Attention of labels to the words of texts, with an explicit gradient.

    S = H Wᵀ (B, T, c)   A = softmax of S over words   P = Aᵀ V (B, c, f)

    H (B, T, d) states of words, V (B, T, f) what is read of them, W (c, d) a row a label: the same for all texts, or
    (B, c, d) where each text has labels of its own

    dV = A dP    dS = A (V dPᵀ − δ), δ = dP · P summed over f    dH = dS W    dW = dSᵀ H

Large products have inputs of one type and give float32; so does softmax. Nothing as large as (B, c, T, d) is made, nor
(B, c, d) where labels are the same for all texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a batch, as labels read them."""

    states: Tensor  # (B, T, d)
    values: Tensor  # (B, T, f), of the same type
    mask: Tensor | None = None  # (B, T) bool: real words; None: all

    def attend(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return A (B, T, c) in the type of the states and P (B, c, f) in float32; `rows` have the states' type."""
        logits = product(self.states, rows.mT)
        if self.mask is not None:
            # Not minus infinity: a text without words must give finite numbers.
            logits.masked_fill_(~self.mask[:, :, None], torch.finfo(logits.dtype).min)
        attention = logits.softmax(1).to(self.states.dtype)
        return attention, product(attention.mT, self.values)

    def gradients(self, rows: Tensor, attention: Tensor, attended: Tensor, upper: Tensor) -> Gradients:
        """Return gradients from `upper` (B, c, f) float32, that of P; `attention` and `attended` are from `attend`."""
        narrow = upper.to(self.states.dtype)
        signal = product(self.values, narrow.mT).sub_((upper * attended).sum(2)[:, None]).mul_(attention)
        signal = signal.to(self.states.dtype)  # dS
        if rows.ndim == 2:
            of_rows = product(signal.flatten(0, 1).T, self.states.flatten(0, 1))
        else:
            of_rows = product(signal.mT, self.states)
        return Gradients(product(signal, rows), product(attention, narrow), of_rows)


class Gradients(NamedTuple):
    """Gradients of the inputs of attention, in float32."""

    states: Tensor  # (B, T, d)
    values: Tensor  # (B, T, f)
    rows: Tensor  # (c, d) or (B, c, d)


def product(left: Tensor, right: Tensor) -> Tensor:
    """Return the product of matrices or batches of matrices in float32; on a GPU without rounding the sums."""
    if not left.is_cuda or left.dtype == torch.float32:
        return (left @ right).float()
    if left.ndim == right.ndim == 3:
        return torch.bmm(left, right, out_dtype=torch.float32)
    flat = torch.mm(left.flatten(0, -2), right, out_dtype=torch.float32)
    return flat.view(*left.shape[:-1], right.shape[1])
