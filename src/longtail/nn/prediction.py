"""Read many texts with a trained network: sorted by length, one batch at a time, results in the order of the texts.

    tokens (n_texts)  ->  TopK (n_texts, k) and vectors (n_texts, width), either or both of one pass of the encoder

Batches are prepared in the background, and the results of a batch are fetched while the next one is computed, so that
the device never waits for the host. Threads that predict at once take turns, a batch each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from longtail.nn.batch import Batch
from longtail.nn.heads.base import Head, HeadInputs
from longtail.nn.network import Network, device_of
from longtail.nn.turns import in_turn
from longtail.run.progress import SILENT
from longtail.run.run import Run
from longtail.text.tokens import TokenRows
from longtail.types import NO_LABEL, TopK

_TOKENS_AT_ONCE = {"cpu": 1 << 13, "cuda": 1 << 16}
_MOST_TEXTS = 1024
_WIDTHS = 8

Rows = NDArray[np.int64]


def top_k_of(network: Network, tokens: TokenRows, k: int, *, run: Run | None = None, places: bool = False) -> TopK:
    """Return the k best labels of each text, or with `places` their places in the head.

    Rows are short where the network has fewer labels.
    """
    writer = _TopKWriter(network.head, len(tokens), k, places)
    _read(network, tokens, [writer], run or Run(), "predict")
    return writer.top_k


def vectors_of(network: Network, tokens: TokenRows, *, run: Run | None = None) -> NDArray[np.float32]:
    """Return the vector of each text, (n_texts, width)."""
    writer = _VectorWriter(network.encoder.width, len(tokens))
    _read(network, tokens, [writer], run or Run(), "text vectors")
    return writer.vectors


def top_k_and_vectors_of(
    network: Network, tokens: TokenRows, k: int, *, run: Run | None = None
) -> tuple[TopK, NDArray[np.float32]]:
    """Return the k best labels and the vector of each text; every text is encoded once."""
    best, vectors = _TopKWriter(network.head, len(tokens), k), _VectorWriter(network.encoder.width, len(tokens))
    _read(network, tokens, [best, vectors], run or Run(), "predict")
    return best.top_k, vectors.vectors


class _Writer(Protocol):
    """Makes something of the text vectors of each batch, and writes it to its place among all texts."""

    def compute(self, inputs: HeadInputs) -> tuple[Tensor, ...]: ...

    def write(self, texts: Rows, results: tuple[Tensor, ...]) -> None: ...


class _TopKWriter:
    """Takes the best labels of each batch."""

    def __init__(self, head: Head, n_texts: int, k: int, places: bool = False) -> None:
        self.head, self.k = head, min(k, head.n_labels)
        self.order = None if places else head.order
        self.top_k = TopK(np.full((n_texts, k), NO_LABEL, np.int32), np.full((n_texts, k), -np.inf, np.float32))

    def compute(self, inputs: HeadInputs) -> tuple[Tensor, ...]:
        return self.head.top_k(inputs, self.k)

    def write(self, texts: Rows, results: tuple[Tensor, ...]) -> None:
        scores, places = (tensor.numpy() for tensor in results)
        labels = places if self.order is None else np.where(places >= 0, self.order[places], NO_LABEL)
        self.top_k.labels[texts, : labels.shape[1]] = labels
        self.top_k.scores[texts, : labels.shape[1]] = np.where(places >= 0, scores, -np.inf)


class _VectorWriter:
    """Takes the text vectors of each batch."""

    def __init__(self, width: int, n_texts: int) -> None:
        self.vectors = np.empty((n_texts, width), np.float32)

    def compute(self, inputs: HeadInputs) -> tuple[Tensor, ...]:
        return (inputs.vectors.float(),)

    def write(self, texts: Rows, results: tuple[Tensor, ...]) -> None:
        self.vectors[texts] = results[0].numpy()


def _read(network: Network, tokens: TokenRows, writers: Sequence[_Writer], run: Run, name: str) -> None:
    """Encode each text once and hand its vector to all writers."""
    device, tokeniser = device_of(network), network.encoder.tokeniser
    plans = list(_batches(tokens, _TOKENS_AT_ONCE.get(device.type, 1 << 13), tokeniser.max_tokens))
    step = run.progress.step(name, len(tokens), "texts") if len(plans) > 1 else SILENT.step(name)

    def prepare(number: int) -> Batch:
        texts, width = plans[number]
        return Batch.of(tokens, texts, width, tokeniser.pad_id)

    write_last: Callable[[], None] | None = None
    with _in_use(network), ThreadPoolExecutor(1) as pool, step as advance:
        waiting = [pool.submit(prepare, number) for number in range(min(2, len(plans)))]
        for number, (texts, _) in enumerate(plans):
            batch = waiting.pop(0).result().to(device)
            if number + 2 < len(plans):
                waiting.append(pool.submit(prepare, number + 2))
            with in_turn(run.engine):
                inputs = network.read(batch)
                write_this = _on_host(writers, texts, [writer.compute(inputs) for writer in writers])
            if write_last is not None:
                write_last()
            write_last = write_this
            advance(len(texts))
        if write_last is not None:
            write_last()


def _on_host(writers: Sequence[_Writer], texts: Rows, results: list[tuple[Tensor, ...]]) -> Callable[[], None]:
    """Start to copy results to the host; return a function that waits for the copies and writes them."""
    wait = None
    if results[0][0].is_cuda:
        results = [tuple(tensor.to("cpu", non_blocking=True) for tensor in result) for result in results]
        done = torch.cuda.Event()
        done.record()
        wait = done.synchronize

    def write() -> None:
        if wait is not None:
            wait()
        for writer, result in zip(writers, results, strict=True):
            writer.write(texts, result)

    return write


def _batches(tokens: TokenRows, n_tokens: int, widest: int) -> Iterator[tuple[Rows, int]]:
    """Yield texts and width of each batch, the longest texts first: if memory suffices for them, it does for all."""
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
    """Switch off dropout and gradients; on a GPU use bfloat16.

    Only a network that is being trained changes its mode: the mode of a trained one is shared by all threads.
    """
    was_training = network.training
    if was_training:
        network.eval()
    first = next(network.encoder.parameters())
    mixed = torch.autocast(first.device.type, torch.bfloat16, enabled=first.is_cuda and first.dtype == torch.float32)
    try:
        with torch.inference_mode(), mixed:
            yield
    finally:
        if was_training:
            network.train()
