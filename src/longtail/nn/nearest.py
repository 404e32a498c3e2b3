"""The nearest of dense points with torch: what `neighbours.dense` does on the cores, on a GPU.

Products are float32 as on a CPU. Ties go to the smaller number there as here: where more texts are as good as the last
of k, which torch picks among as it likes, that row is sorted as a whole.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.labels.text_pool import TextPoolOptions
from longtail.neighbours import NO_TEXT, Neighbours, Search
from longtail.progress import Advance

_TEXTS_AT_ONCE, _POOL_AT_ONCE = 1024, 1 << 16
"""Cosines of a block: 256 MiB."""
_SHARE = 0.5
"""A pool that takes more of the free memory stays on the host and is sent block by block."""


class TorchSearch:
    """Searches on a device, see `neighbours.Search`; keeps the last pool there for the next call."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._last: NDArray[np.float32] | None = None
        self._pool = torch.empty(0)

    def __call__(
        self,
        pool: NDArray[np.float32],
        points: NDArray[np.float32],
        k: int,
        pool_groups: NDArray[np.int32],
        groups: NDArray[np.int32],
        advance: Advance,
    ) -> Neighbours:
        """See `Search`."""
        found = Neighbours.none(len(points), k)
        held, groups_of_pool = self._held(pool), self._sent(pool_groups)
        with torch.inference_mode():
            for start in range(0, len(points), _TEXTS_AT_ONCE):
                own = slice(start, start + _TEXTS_AT_ONCE)
                texts, cosines = self._nearest(
                    held, self._sent(points[own]), k, groups_of_pool, self._sent(groups[own])
                )
                found.texts[own], found.cosines[own] = texts.cpu().numpy(), cosines.cpu().numpy()
                advance(len(texts))
        return found

    def _nearest(
        self, pool: Tensor, points: Tensor, k: int, pool_groups: Tensor, groups: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Texts (n, k) and cosines (n, k) of one block of points."""
        texts = torch.full((len(points), k), NO_TEXT, dtype=torch.int32, device=self.device)
        cosines = torch.full((len(points), k), -torch.inf, device=self.device)
        some_have_copies = bool((groups >= 0).any())
        for first in range(0, len(pool), _POOL_AT_ONCE):
            block = slice(first, first + _POOL_AT_ONCE)
            scores = points @ pool[block].to(self.device).T  # (n, n_block)
            if some_have_copies:
                scores.masked_fill_(groups[:, None] == pool_groups[None, block], -torch.inf)
            values, columns = _best(scores, min(k, scores.shape[1]))
            # Texts so far have smaller numbers and stand in front, so a stable sort keeps ties in order.
            values, order = torch.cat([cosines, values], 1).sort(dim=1, descending=True, stable=True)
            texts = torch.cat([texts, (first + columns).int()], 1).gather(1, order[:, :k])
            cosines = values[:, :k]
        return texts.masked_fill(cosines == -torch.inf, NO_TEXT), cosines

    def _held(self, pool: NDArray[np.float32]) -> Tensor:
        if self._last is not pool:
            self._pool = torch.empty(0)
            whole = torch.from_numpy(pool)
            fits = self.device.type == "cpu" or pool.nbytes < _SHARE * torch.cuda.mem_get_info(self.device)[0]
            self._last, self._pool = pool, whole.to(self.device) if fits else whole
        return self._pool

    def _sent(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.device)


def gpu_search() -> TorchSearch | None:
    """A search on the GPU; None where there is none."""
    return TorchSearch(torch.device("cuda")) if torch.cuda.is_available() else None


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k best of each row by (−score, column)."""
    values, columns = scores.topk(k)
    columns, order = columns.sort(dim=1)
    values, order = values.gather(1, order).sort(dim=1, descending=True, stable=True)
    columns = columns.gather(1, order)
    tied = ((scores >= values[:, -1:]).sum(1) > k).nonzero().ravel()
    if len(tied):
        whole, places = scores[tied].sort(dim=1, descending=True, stable=True)
        values[tied], columns[tied] = whole[:, :k], places[:, :k]
    return values, columns


def search_for(options: TextPoolOptions) -> Search | None:
    """The GPU, where there is one and every dense point is compared."""
    return gpu_search() if options.dense and options.search.kind == "exact" else None
