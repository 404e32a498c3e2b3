"""The best labels of many texts: sorted by length, a batch at a time, back in their order.

    tokens (n_texts)  ->  TopK (n_texts, k), or vectors (n_texts, width)

Batches are made in the background, and what the device found is read one batch later: it never waits for the host.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Batch
from longtail.nn.network import Network, device_of
from longtail.progress import SILENT, Progress
from longtail.text.tokens import TokenRows
from longtail.types import NO_LABEL, TopK

_TOKENS_AT_ONCE = {"cpu": 1 << 13, "cuda": 1 << 16}
_MOST_TEXTS = 1024
_WIDTHS = 8

Use = Callable[[Batch], tuple[Tensor, ...]]
Take = Callable[[NDArray[np.int64], tuple[Tensor, ...]], None]


def top_k_of(
    network: Network, tokens: TokenRows, k: int, pad_id: int, progress: Progress = SILENT, places: bool = False
) -> TopK:
    """The k best labels of each text (or their `places` in the head); rows are short where the network knows fewer."""
    labels = np.full((len(tokens), k), NO_LABEL, np.int32)
    scores = np.full((len(tokens), k), -np.inf, np.float32)
    most = min(k, network.head.n_labels)
    order = None if places else network.head.order

    def take(texts: NDArray[np.int64], found: tuple[Tensor, ...]) -> None:
        score, at = (part.numpy() for part in found)
        named = at if order is None else np.where(at >= 0, order[at], NO_LABEL)
        labels[texts, : named.shape[1]] = named
        scores[texts, : named.shape[1]] = np.where(at >= 0, score, -np.inf)

    _each(network, tokens, pad_id, lambda batch: network.top_k(batch, most), take, progress, "predict")
    return TopK(labels, scores)


def vectors_of(network: Network, tokens: TokenRows, pad_id: int, progress: Progress = SILENT) -> NDArray[np.float32]:
    """The vector of each text."""
    made = np.empty((len(tokens), network.encoder.width), np.float32)

    def use(batch: Batch) -> tuple[Tensor, ...]:
        return (network.encoder(*batch.inputs).float(),)

    def take(texts: NDArray[np.int64], found: tuple[Tensor, ...]) -> None:
        made[texts] = found[0].numpy()

    _each(network, tokens, pad_id, use, take, progress, "text vectors")
    return made


def _each(
    network: Network, tokens: TokenRows, pad_id: int, use: Use, take: Take, progress: Progress, name: str
) -> None:
    device = device_of(network)
    widest = network.encoder.tokeniser.max_tokens
    plans = list(_batches(tokens, _TOKENS_AT_ONCE.get(device.type, 1 << 13), widest))
    step = progress.step(name, len(tokens), "texts") if len(plans) > 1 else SILENT.step(name)
    last: tuple[NDArray[np.int64], tuple[Tensor, ...], Callable[[], None]] | None = None
    with _in_use(network), ThreadPoolExecutor(1) as pool, step as advance:
        making = [pool.submit(Batch.of, tokens, texts, width, pad_id) for texts, width in plans[:2]]
        for number, (texts, _) in enumerate(plans):
            batch = making.pop(0).result().to(device)
            if number + 2 < len(plans):
                making.append(pool.submit(Batch.of, tokens, *plans[number + 2], pad_id))
            now = texts, *_on_host(use(batch))
            if last is not None:
                _taken(take, *last)
            last = now
            advance(len(texts))
        if last is not None:
            _taken(take, *last)


def _on_host(found: tuple[Tensor, ...]) -> tuple[tuple[Tensor, ...], Callable[[], None]]:
    """Copies on the host, and a function that waits until they are there."""
    if not found[0].is_cuda:
        return found, lambda: None
    copies = tuple(part.to("cpu", non_blocking=True) for part in found)
    done = torch.cuda.Event()
    done.record()
    return copies, done.synchronize


def _taken(take: Take, texts: NDArray[np.int64], found: tuple[Tensor, ...], wait: Callable[[], None]) -> None:
    wait()
    take(texts, found)


def _batches(tokens: TokenRows, n_tokens: int, widest: int) -> Iterator[tuple[NDArray[np.int64], int]]:
    """Texts and width of each batch, the longest first: memory that suffices for it suffices for all."""
    lengths = tokens.lengths()
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        width = min(-(-int(lengths[order[start]]) // _WIDTHS) * _WIDTHS, widest)
        stop = start + max(1, min(_MOST_TEXTS, n_tokens // width))
        yield order[start:stop], width
        start = stop


@contextmanager
def _in_use(network: Network) -> Iterator[None]:
    """Without dropout and gradients; in bfloat16 on a GPU; not compiled, because here shapes are many."""
    was_training = network.training
    network.eval()
    first = next(network.encoder.parameters())
    mixed = torch.autocast(first.device.type, torch.bfloat16, enabled=first.is_cuda and first.dtype == torch.float32)
    try:
        with torch.inference_mode(), mixed, torch.compiler.set_stance("force_eager"):
            yield
    finally:
        network.train(was_training)
