"""Measure how long a training step takes on this machine: a few steps of the real network on texts of real lengths.

Batches are sorted by length, so steps differ. Three widths are tried, at one, three and five sixths of all batches. On
a CPU, where a whole batch would take long, fewer texts are used: time is then a line over the tokens of a step, whose
intercept is the fixed cost of a step (the optimiser). Where layers are compiled, which takes a quarter of a minute per
width, only the middle width is tried.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from longtail.nn.encoders.base import Encoder
from longtail.nn.heads.base import Head, positions
from longtail.nn.network import Network
from longtail.nn.training.batches import WINDOW
from longtail.nn.training.devices import choose_device
from longtail.nn.training.options import TrainingOptions
from longtail.nn.training.trainer import Trainer, step_width
from longtail.nn.turns import in_turn
from longtail.run.local import LocalEngine
from longtail.run.progress import Advance
from longtail.run.run import Run
from longtail.text.tokens import TokenRows
from longtail.types import LabelMatrix

_FLOPS = 5e10
"""Operations of one trial step on a CPU: less than a second."""
_WARM = 8
"""Steps of a trial with compiled layers."""
_POINTS = 3
"""Widths that are tried."""
_NEAR = 4
"""Texts of similar length that a trial batch repeats."""


class _Clock:
    """Progress that records the time of each step."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.marks: list[float] = []

    @contextmanager
    def step(self, name: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
        """Record the time whenever the step advances."""
        self.marks = []

        def advance(amount: int, note: str = "") -> None:
            if self.device.type == "cuda":
                torch.cuda.synchronize(self.device)
            self.marks.append(time.perf_counter())

        yield advance


def batch_widths(tokens: TokenRows, n_texts: int, training: TrainingOptions, limit: int) -> NDArray[np.int64]:
    """Return the approximate widths of the batches of a window, narrowest first, from a sample of the texts.

    `limit` is the largest width.
    """
    size = min(training.batch_size, n_texts)
    lengths = np.sort(tokens.lengths())
    edges = _edges(len(lengths), min(WINDOW, n_texts // size))
    step = step_width(int(lengths[-1]), _compiles(training))
    widths: NDArray[np.int64] = np.minimum(-(-lengths[edges] // step) * step, limit)
    return widths


def seconds_per_step(
    network: Network,
    tokens: TokenRows,
    labels: LabelMatrix,
    n_texts: int,
    training: TrainingOptions,
    engine: LocalEngine,
) -> float:
    """Return the mean time of a step of a training with `n_texts` texts; `tokens` and `labels` are a sample."""
    device, encoder = choose_device(training.device), network.encoder
    fill(encoder)
    mean_width = float(batch_widths(tokens, n_texts, training, encoder.tokeniser.max_tokens).mean())
    size = min(training.batch_size, n_texts)
    with in_turn(engine), torch.random.fork_rng(devices=[]):
        trial = _Trial(network, tokens, labels, training, device)
        if _compiles(training):
            return trial.run(0.5, size, _WARM) * mean_width / trial.width(0.5)
        trial.run(0.0, 1)  # warm-up: allocates memory and loads libraries
        budget = _FLOPS / (6 * _inner_weights(encoder)) if device.type == "cpu" else np.inf
        shares = (np.arange(_POINTS) + 0.5) / _POINTS
        sizes = [int(np.clip(budget // trial.width(share), 1, size)) for share in shares]
        timings = [(n * trial.width(share), trial.run(share, n)) for share, n in zip(shares, sizes, strict=True)]
        if all(n == size for n in sizes):
            return float(np.mean([step_s for _, step_s in timings]))
        timings.append((trial.width(0.0), trial.run(0.0, 1)))
    n_tokens, seconds = np.array(timings, np.float64).T
    start = max(0.0, float(np.polyfit(n_tokens, seconds, 1)[1]))
    each = float(((seconds - start) / n_tokens)[:-1].mean())
    return start + max(each, 0.0) * size * mean_width


def fill(encoder: Encoder) -> None:
    """Give an encoder without weights (on the `meta` device) weights of 0."""
    if any(parameter.is_meta for parameter in encoder.parameters()):
        encoder.to_empty(device="cpu")
        with torch.no_grad():
            for tensor in (*encoder.parameters(), *encoder.buffers()):
                tensor.zero_()


class _Trial:
    """Training steps with batches of a sample."""

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
        """Return the length of the text at this share of all texts, sorted by length."""
        return int(self.tokens.lengths()[self.order[self._place(share)]])

    def run(self, share: float, n_texts: int, n_steps: int = 2) -> float:
        """Return the seconds of a step with texts as long as the one at this share; the fastest of several."""
        last = self._place(share)
        rows = np.resize(self.order[max(0, last - _NEAR + 1) : last + 1], n_texts)
        self.trainer.options = self.options.model_copy(update={"n_steps": self.trainer.at.step + n_steps})
        self.trainer.fit(self.tokens.take(rows), self.labels.take(rows), self.pad_id, self.max_width)
        return float(np.diff(self.clock.marks).min())

    def _place(self, share: float) -> int:
        return min(len(self.order) - 1, int(share * len(self.order)))


def _placed(labels: LabelMatrix, head: Head) -> LabelMatrix:
    """Return labels as places that a head has; which ones does not matter here."""
    known = np.arange(labels.n_labels) % head.n_labels
    places = known if head.order is None else positions(head.order, head.n_labels)[known]
    return labels.renumber(places, head.n_labels if head.order is None else len(head.order))


def _inner_weights(encoder: Encoder) -> int:
    """Return the number of weights that every token is multiplied with: all but embeddings."""
    tables = sum(module.weight.numel() for module in encoder.modules() if isinstance(module, torch.nn.Embedding))
    return max(1, sum(parameter.numel() for parameter in encoder.parameters()) - tables)


def _edges(n: int, n_batches: int) -> NDArray[np.int64]:
    """Return the last text of each batch, of `n` sorted texts."""
    return np.ceil(np.arange(1, n_batches + 1) * n / n_batches).astype(np.int64) - 1


def _compiles(training: TrainingOptions) -> bool:
    on_gpu = choose_device(training.device).type == "cuda"
    return training.compile == "on" or (training.compile == "auto" and on_gpu)
