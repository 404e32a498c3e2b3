"""How long a step of training takes on this machine: a few steps of the real network, on texts of real lengths.

Batches are sorted by length, so steps differ. Three widths are tried, at one, three and five sixths of all batches; on
a CPU with fewer texts, where a whole batch would take long: time is then a line over the tokens of a step, whose start
is what a step costs whatever its texts are (the optimiser). Where layers are compiled, which takes a quarter of a
minute a width, only the middle one is tried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from longtail.engines.local import LocalEngine
from longtail.nn.batches import WINDOW
from longtail.nn.devices import choose_device
from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, positions
from longtail.nn.network import Network
from longtail.nn.tagger import threads_of
from longtail.nn.trainer import Trainer, step_width
from longtail.nn.training import TrainingOptions
from longtail.progress import Advance
from longtail.run import Run
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

_FLOPS = 5e10
"""Of one step of a trial on a CPU: less than a second."""
_WARM = 8
"""Steps of a trial with compiled layers."""
_POINTS = 3
"""Widths that are tried."""
_NEAR = 4
"""Texts of about the same length that a batch of the trial repeats."""


class _Clock:
    """Progress that notes how long each step took."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.marks: list[float] = []

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """See `Progress.step`."""
        self.marks = []

        def advance(amount: int, note: str = "") -> None:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            self.marks.append(time.perf_counter())

        yield advance


def batch_widths(tokens: TokenRows, n_texts: int, training: TrainingOptions, limit: int) -> NDArray[np.int64]:
    """About how wide the batches of a window are, the narrowest first, by a sample of the texts; `limit`: at most."""
    size = min(training.batch_size, n_texts)
    lengths = np.sort(tokens.lengths())
    edges = _edges(len(lengths), min(WINDOW, n_texts // size))
    step = step_width(int(lengths[-1]), _compiles(training))
    widths: NDArray[np.int64] = np.minimum(-(-lengths[edges] // step) * step, limit)
    return widths


def seconds_a_step(
    network: Network,
    tokens: TokenRows,
    labels: LabelMatrix,
    n_texts: int,
    training: TrainingOptions,
    engine: LocalEngine,
) -> float:
    """Mean time of a step of a training with `n_texts` texts; `tokens` and `labels` are a sample of them."""
    device, encoder = choose_device(training.device), network.encoder
    fill(encoder)
    mean_width = float(batch_widths(tokens, n_texts, training, encoder.tokeniser.max_tokens).mean())
    size = min(training.batch_size, n_texts)
    with threads_of(engine), torch.random.fork_rng(devices=[]):
        trial = _Trial(network, tokens, labels, training, device)
        if _compiles(training):
            return trial.run(0.5, size, _WARM) * mean_width / trial.width(0.5)
        trial.run(0.0, 1)  # memory is taken, libraries wake up
        budget = _FLOPS / (6 * _inner_weights(encoder)) if device.type == "cpu" else np.inf
        shares = (np.arange(_POINTS) + 0.5) / _POINTS
        tried = [(at, int(np.clip(budget // trial.width(at), 1, size))) for at in shares]
        found = [(n * trial.width(at), trial.run(at, n)) for at, n in tried]
        if all(n == size for _, n in tried):
            return float(np.mean([took_s for _, took_s in found]))
        found.append((trial.width(0.0), trial.run(0.0, 1)))
    n_tokens, seconds = np.array(found, np.float64).T
    start = max(0.0, float(np.polyfit(n_tokens, seconds, 1)[1]))
    each = float(((seconds - start) / n_tokens)[:-1].mean())
    return start + max(each, 0.0) * size * mean_width


def fill(encoder: Encoder) -> None:
    """Give an outline weights, all of them 0."""
    if any(parameter.is_meta for parameter in encoder.parameters()):
        encoder.to_empty(device="cpu")
        with torch.no_grad():
            for tensor in (*encoder.parameters(), *encoder.buffers()):
                tensor.zero_()


class _Trial:
    """Steps with batches of a sample."""

    def __init__(
        self, network: Network, tokens: TokenRows, labels: LabelMatrix, training: TrainingOptions, device: torch.device
    ) -> None:
        self.clock = _Clock(device)
        self.options = training.model_copy(update={"tensorboard": None})
        self.trainer = Trainer(network, self.options, 0, Run(progress=self.clock))
        self.tokens, self.labels = tokens, _placed(labels, network.head)
        self.pad_id, self.max_width = network.encoder.tokeniser.pad_id, network.encoder.tokeniser.max_tokens
        self.order = np.argsort(tokens.lengths(), kind="stable")

    def width(self, share: float) -> int:
        """Tokens of the texts at this share of all, by length."""
        return int(self.tokens.lengths()[self.order[self._place(share)]])

    def run(self, share: float, n_texts: int, n_steps: int = 2) -> float:
        """Seconds of a step with texts as long as those at this share of all; the fastest of several."""
        last = self._place(share)
        rows = np.resize(self.order[max(0, last - _NEAR + 1) : last + 1], n_texts)
        self.trainer.options = self.options.model_copy(update={"n_steps": self.trainer.at.step + n_steps})
        self.trainer.fit(self.tokens.take(rows), self.labels.take(rows), self.pad_id, self.max_width)
        return float(np.diff(self.clock.marks).min())

    def _place(self, share: float) -> int:
        return min(len(self.order) - 1, int(share * len(self.order)))


def _placed(labels: LabelMatrix, head: Head) -> LabelMatrix:
    """Labels as places that a head knows; which ones does not matter here."""
    known = np.arange(labels.n_labels) % head.n_labels
    places = known if head.order is None else positions(head.order, head.n_labels)[known]
    return labels.renumber(places, head.n_labels if head.order is None else len(head.order))


def _inner_weights(encoder: Encoder) -> int:
    """Weights that every token meets: all but those of words and pieces."""
    tables = sum(part.weight.numel() for part in encoder.modules() if isinstance(part, torch.nn.Embedding))
    return max(1, sum(parameter.numel() for parameter in encoder.parameters()) - tables)


def _edges(n: int, n_batches: int) -> NDArray[np.int64]:
    """Of `n` sorted texts, the last of each batch."""
    return np.ceil(np.arange(1, n_batches + 1) * n / n_batches).astype(np.int64) - 1


def _compiles(training: TrainingOptions) -> bool:
    on_gpu = choose_device(training.device).type == "cuda"
    return training.compile == "on" or (training.compile == "auto" and on_gpu)
