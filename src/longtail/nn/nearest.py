"""Find the nearest dense points on a GPU, as `neighbours.dense` does on a CPU.

Products are float32 as on a CPU, and ties go to the smaller number there as here: where several texts are as good as
the last of k, torch picks any of them, so such a row is sorted as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.neighbours import NO_TEXT, Blocks, Neighbours, Query, Search
from longtail.neighbours.text_pool import TextPoolOptions

_BLOCKS = Blocks(1024, 1 << 16)
"""Cosines of a block: 256 MiB."""
_SHARE = 0.5
"""A pool that needs more than this share of the free memory stays on the host and is sent block by block."""


class TorchSearch:
    """A `neighbours.Search` on a device; keeps the last pool there for the next call."""

    def __init__(self, device: torch.device, blocks: Blocks = _BLOCKS) -> None:
        self.device, self.blocks = device, blocks
        self._last: NDArray[np.float32] | None = None
        self._pool = torch.empty(0)

    def __call__(self, pool: NDArray[np.float32], query: Query) -> Iterator[Neighbours]:
        """Yield the neighbours of the points, span by span."""
        held, groups_of_pool = self._held(pool), self._sent(query.pool_groups)
        for start in range(0, len(query), self.blocks.points):
            span = slice(start, start + self.blocks.points)
            points, groups = self._sent(query.points[span]), self._sent(query.groups[span])
            with torch.inference_mode():
                texts, cosines = self._nearest(held, points, query.k, groups_of_pool, groups)
            yield Neighbours(texts.cpu().numpy(), cosines.cpu().numpy())

    def _nearest(
        self, pool: Tensor, points: Tensor, k: int, pool_groups: Tensor, groups: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return texts (n, k) and cosines (n, k) for one block of points."""
        texts = torch.full((len(points), k), NO_TEXT, dtype=torch.int32, device=self.device)
        cosines = torch.full((len(points), k), -torch.inf, device=self.device)
        some_have_copies = bool((groups >= 0).any())
        for first in range(0, len(pool), self.blocks.pool):
            block = slice(first, first + self.blocks.pool)
            scores = points @ pool[block].to(self.device).T  # (n, n_block)
            if some_have_copies:
                scores.masked_fill_(groups[:, None] == pool_groups[None, block], -torch.inf)
            values, columns = _best(scores, min(k, scores.shape[1]))
            # Earlier texts have smaller numbers and come first, so a stable sort keeps ties in order.
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
    """Return a search on the GPU, or None without a GPU."""
    return TorchSearch(torch.device("cuda")) if torch.cuda.is_available() else None


def _best(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k best of each row by (−score, column): values and columns, (n, k) each."""
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
    """Return a search on the GPU where there is one and every dense point is compared, else None."""
    return gpu_search() if options.dense and options.search.kind == "exact" else None
