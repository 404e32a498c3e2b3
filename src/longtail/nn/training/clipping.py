"""Clip gradients at a fixed norm, or at a multiple of the largest recent one.

The second is the rule of AttentionXML's code. A step whose norm is far above those of the last five is cut down, and
the limit follows as norms fall. What counts of a norm is at most 1, and at most twice the largest before it, so that an
outlier hardly lifts the limit. The first five steps are not clipped.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from longtail.nn.training.options import TrainingOptions

_N_RECENT = 5
_MOST = 1.0
_GROWTH = 2.0
_TINY = 1e-6


class Clipper:
    """Clips the gradients of a network before each step."""

    def __init__(self, options: TrainingOptions, device: torch.device) -> None:
        self.options = options
        self.recent = torch.full((_N_RECENT,), torch.inf, device=device)
        """What counts of the norms of the last steps, the oldest first."""

    def clip(self, accelerator: Any, network: nn.Module) -> None:
        """Clip the gradients of all parameters, together."""
        if self.options.clip_norm:
            accelerator.clip_grad_norm_(network.parameters(), self.options.clip_norm)
        if self.options.clip_recent:
            norm = accelerator.clip_grad_norm_(network.parameters(), torch.inf)  # only measured
            limit = self._limit(norm)
            for parameter in network.parameters():
                if parameter.grad is not None:
                    parameter.grad.mul_((limit / (norm + _TINY)).clamp(max=1))

    def _limit(self, norm: Tensor) -> Tensor:
        """Return the largest norm that is left as it is, and remember the new one."""
        largest = self.recent.max()
        finite = norm.nan_to_num(nan=torch.inf)  # float16 overflows now and then; such a step is skipped
        counts = torch.minimum(finite, largest * _GROWTH).clamp(max=_MOST)
        self.recent.copy_(torch.cat([self.recent[1:], counts[None]]))
        return largest * self.options.clip_recent
