"""The best labels of many texts: sorted by length, a batch at a time, back in their order.

tokens (n_texts)  ->  TopK (n_texts, k), or vectors (n_texts, width)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from longtail.nn.batch import Batch
from longtail.nn.network import Network, device_of
from longtail.progress import SILENT, Progress
from longtail.text.tokens import TokenRows
from longtail.types import NO_LABEL, TopK

_TOKENS_AT_ONCE = {"cpu": 1 << 13, "cuda": 1 << 17}
_MOST_TEXTS = 1024
_WIDTHS = 8


def top_k_of(
    network: Network, tokens: TokenRows, k: int, pad_id: int, progress: Progress = SILENT, places: bool = False
) -> TopK:
    """The k best labels of each text (or their `places` in the head); rows are short where the network knows fewer."""
    labels = np.full((len(tokens), k), NO_LABEL, np.int32)
    scores = np.full((len(tokens), k), -np.inf, np.float32)
    most = min(k, network.head.n_labels)
    order = None if places else network.head.order

    def some(batch: Batch, texts: NDArray[np.int64]) -> None:
        found, at = (part.cpu().numpy() for part in network.top_k(batch, most))
        named = at if order is None else np.where(at >= 0, order[at], NO_LABEL)
        labels[texts, : named.shape[1]] = named
        scores[texts, : named.shape[1]] = np.where(at >= 0, found, -np.inf)

    _each(network, tokens, pad_id, some, progress, "predict")
    return TopK(labels, scores)


def vectors_of(network: Network, tokens: TokenRows, pad_id: int, progress: Progress = SILENT) -> NDArray[np.float32]:
    """The vector of each text."""
    made = np.empty((len(tokens), network.encoder.width), np.float32)

    def some(batch: Batch, texts: NDArray[np.int64]) -> None:
        made[texts] = network.encoder(batch.ids, batch.mask).float().cpu().numpy()

    _each(network, tokens, pad_id, some, progress, "text vectors")
    return made


def _each(
    network: Network,
    tokens: TokenRows,
    pad_id: int,
    use: Callable[[Batch, NDArray[np.int64]], None],
    progress: Progress,
    name: str,
) -> None:
    device = device_of(network)
    batches = list(_batches(tokens, _TOKENS_AT_ONCE.get(device.type, 1 << 13)))
    step = progress.step(name, len(tokens), "texts") if len(batches) > 1 else SILENT.step(name)
    with _in_use(network), step as advance:
        for texts, width in batches:
            use(Batch.of(tokens, texts, width, pad_id).to(device), texts)
            advance(len(texts))


def _batches(tokens: TokenRows, n_tokens: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Texts and width of each batch, the longest first: memory that suffices for it suffices for all."""
    lengths = tokens.lengths()
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        width = -(-int(lengths[order[start]]) // _WIDTHS) * _WIDTHS
        stop = start + max(1, min(_MOST_TEXTS, n_tokens // width))
        yield order[start:stop], width
        start = stop


@contextmanager
def _in_use(network: Network) -> Iterator[None]:
    """Without dropout and gradients; in bfloat16 on a GPU."""
    was_training = network.training
    network.eval()
    device = device_of(network)
    try:
        with torch.inference_mode(), torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            yield
    finally:
        network.train(was_training)
