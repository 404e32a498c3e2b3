"""Estimate what training a network takes: memory and disk by counting, time by a few steps on this machine.

    encoder     4 bytes per weight, and 12 more for gradient and two moments where it is trained
    labels      tables: their storage, and the moments of their optimiser; other heads like the encoder
    averages    4 bytes per trained weight, and as much again for the best weights
    activations what autograd keeps of one text of the widest batch, times the texts of a micro-batch

Shapes come from the encoder's outline and from the head itself, both without weights. What autograd keeps is counted
by running one text through an encoder of zeros, which works for every encoder. On a GPU, large products are in half
precision and attention keeps no table of all pairs: of the bytes without dropout, `_HALF` remain (measured: BERT-base,
128 tokens, 256 texts, 12.6 GiB with weights and optimiser).

Of several processes (`shards_of`), what one takes is counted: its share of a batch and of sharded label tables.

After the backward pass activations are freed, and the update of the labels uses that memory. So the peak is the larger
of the two.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.data.dataset import Split
from longtail.nn.encoders.base import Encoder, EncoderOptions, encoder_class
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.shards import n_processes_here
from longtail.nn.heads.table import LabelTable
from longtail.nn.network import Network
from longtail.nn.tagger import VALIDATION_TEXTS, MakeHead, MakeNetwork
from longtail.nn.training.devices import choose_device, choose_precision, free_gpu_bytes
from longtail.nn.training.options import TrainingOptions
from longtail.nn.trial import batch_widths, fill, seconds_per_step
from longtail.run.local import LocalEngine
from longtail.run.resources import ResourceEstimate, free_memory_bytes
from longtail.text.tokens import TokenRows, tokenise

_SAMPLE = 1000
_PROGRAMS = {"cpu": 700 << 20, "cuda": 3 << 30}
"""Main memory of Python, torch and the libraries it loads."""
_CONTEXT = 600 << 20
"""GPU memory of CUDA itself."""
_HALF = 0.6
_BACKWARD = 1.25
"""Factor for the backward pass and the allocator on a CPU."""
_INPUTS = 1 / 16
"""Share of a layer's activations that are its inputs."""
_FORWARD = 3
"""A forward pass takes a third of a step."""
_UPDATE = 8
"""float32 arrays that the update of a chunk of labels holds at once."""


class Advice(NamedTuple):
    """Which options of a method make its networks smaller."""

    encoder: str = "encoders.*"
    """Path of its encoder options."""
    labels: str = "labels.storage, labels.optimizer or labels.chunk"
    """Options that make the labels smaller."""
    training: str = "training"
    """Path of its training options."""


_ADVICE = Advice()


class _Member(NamedTuple):
    """One network before training."""

    encoder: Encoder
    head: Head
    tokens: TokenRows
    """Those of a sample of the texts."""
    rows: NDArray[np.int64]
    """The texts of the sample."""
    tokenise_s: float
    """Seconds per text."""


class EstimateKeywords(TypedDict, total=False):
    """How much is estimated, as keywords of every function that estimates."""

    n_seeds: int
    """Trainings one after the other, by default one."""
    measure: bool
    """Whether time is measured as well, if memory suffices."""
    threads: int | None


def estimate_network(
    split: Split,
    encoders: Sequence[EncoderOptions],
    make_head: MakeHead,
    training: TrainingOptions,
    *,
    n_seeds: int = 1,
    n_readings: float = 0.0,
    advice: Advice = _ADVICE,
    measure: bool = False,
    threads: int | None = None,
    make_network: MakeNetwork = Network,
) -> ResourceEstimate:
    """Return what it takes to train `n_seeds` networks for each encoder, one after the other.

    `n_readings` is how often the trained network reads all texts once more. With `measure`, time is measured if memory
    suffices.
    """
    counted, weights, seconds = [], [], []
    for options in encoders:
        member = _member(split, options, make_head)
        counted.append(_counted(member, split, training, advice))
        weights.append(_weight_bytes(member))
        if measure and _fits(counted[-1]):
            network = make_network(member.encoder, make_head(member.encoder.width), 0.0)
            network_s = _seconds(member, network, split, training, n_readings, LocalEngine(threads))
            seconds.append(len(split) * member.tokenise_s + n_seeds * network_s)
    largest = max(counted, key=lambda estimate: (estimate.gpu_bytes, estimate.memory_bytes))
    kept = n_seeds * sum(weights) - max(weights)  # all networks stay until the model is saved
    total_s = sum(seconds) if len(seconds) == len(encoders) else None
    # A checkpoint stays until the next one is complete; at the end there are the last ones and the model.
    several = total_s is None or total_s > training.checkpoint_s
    more = max(n_seeds * sum(weights), largest.disk_bytes if several else 0)
    return replace(
        largest,
        memory_bytes=largest.memory_bytes + (0 if largest.gpu_bytes else kept),
        gpu_bytes=largest.gpu_bytes + (kept if largest.gpu_bytes else 0),
        disk_bytes=n_seeds * sum(estimate.disk_bytes for estimate in counted) + more,
        seconds=total_s,
    )


def text_width(split: Split, encoders: Sequence[EncoderOptions]) -> int:
    """Return the width of the widest text vector."""
    return max(_member(split, options, lambda width: Dense(width, 2)).encoder.width for options in encoders)


def _member(split: Split, options: EncoderOptions, make_head: MakeHead) -> _Member:
    rows = np.linspace(0, len(split) - 1, min(len(split), _SAMPLE)).astype(np.int64)
    texts = split.take(rows).texts
    encoder = encoder_class(options).outline(options, texts, len(split))
    with torch.device("meta"):
        head = make_head(encoder.width)
    start = time.perf_counter()
    tokens = tokenise(texts, encoder.tokeniser, options.tokens)
    return _Member(encoder, head, tokens, rows, (time.perf_counter() - start) / len(rows))


def _counted(member: _Member, split: Split, training: TrainingOptions, advice: Advice) -> ResourceEstimate:
    """Return memory and disk of one network."""
    device = choose_device(training.device)
    half = choose_precision(training.precision, device) != "no"
    tables, words = [*member.head.tables().values()], [*member.encoder.tables().values()]
    of_encoder = _bytes_of(p for p in member.encoder.parameters() if p.requires_grad)
    trained = of_encoder + _bytes_of(p for p in member.head.parameters() if p.requires_grad)  # tables need no gradient
    bulk = (*member.head.bulk.values(), *(table.weight for table in words))
    averaged = trained + 4 * sum(parameter.numel() for parameter in bulk)
    copies = (training.averaging.kind != "none") + bool(training.validation)
    weights, moments = _weight_bytes(member), sum(table.moment_bytes for table in (*tables, *words))
    size = min(training.batch_size, len(split))
    n_texts = min(training.micro_batch or size, -(-size // n_processes_here()))  # of one process
    n_scored = n_texts * n_processes_here() if any(_is_sharded(table) for table in tables) else n_texts
    widest = int(batch_widths(member.tokens, len(split), training, member.encoder.tokeniser.max_tokens).max())
    activations = n_texts * kept_bytes(member.encoder, widest, device, half) + member.head.held_bytes(n_scored, widest)
    activations += trained + (trained // 2 if half else 0)  # gradients, and weights in half precision
    update = max((_UPDATE * 4 * table.n_at_once * table.weight.shape[1] for table in (*tables, *words)), default=0)
    swapped = averaged if training.validation else 0
    device_bytes = {
        "encoder and its optimiser": _bytes_of(member.encoder.parameters()) + 2 * of_encoder,
        "labels and their optimiser": _bytes_of(member.head.parameters()) + moments + 2 * (trained - of_encoder),
        "averages of weights": copies * averaged,
        "a step": max(activations, update, swapped),
    }
    tokens = int(len(split) * member.tokens.lengths().mean() * member.tokens.ids.itemsize)
    host_bytes = {"texts and tokens": split.texts.nbytes + 2 * tokens, "programs": _PROGRAMS[device.type]}
    checkpoint = weights + 2 * trained + moments + copies * averaged
    disk = checkpoint + tokens
    how_to_shrink = _how_to_shrink(device_bytes, update > activations, advice, member.encoder.options_class)
    on_device, on_host = sum(device_bytes.values()), sum(host_bytes.values())
    if device.type == "cuda":
        on_host += max(weights, 2 * trained)  # weights are created on the host, and checkpoints are copied there
        items = tuple(device_bytes.items())
        return ResourceEstimate(on_host, disk, how_to_shrink, on_device + _CONTEXT, parts=items)
    items = (*device_bytes.items(), *host_bytes.items())
    return ResourceEstimate(on_device + on_host, disk, how_to_shrink, parts=items)


def _seconds(
    member: _Member,
    network: Network,
    split: Split,
    training: TrainingOptions,
    n_readings: float,
    engine: LocalEngine,
) -> float:
    """Return the time of one training: its steps, validations and further readings of the texts."""
    n_held = min(VALIDATION_TEXTS, int(len(split) * training.validation))
    size = min(training.batch_size, len(split) - n_held)
    epoch = (len(split) - n_held) / size
    n_steps = training.n_steps or max(1, math.ceil(training.epochs * epoch))
    n_steps = max(1, n_steps - round(training.epochs_left_out * epoch))
    labels = split.labels.take(member.rows)
    step_s = seconds_per_step(network, member.tokens, labels, n_texts=len(split), training=training, engine=engine)
    n_validations = (training.validations or max(1, round(training.epochs))) if n_held else 0
    n_read = n_readings * len(split) + n_validations * n_held
    return n_steps * step_s + n_read * step_s / size / _FORWARD


def _fits(estimate: ResourceEstimate) -> bool:
    free, free_gpu = free_memory_bytes(), free_gpu_bytes()
    return (free is None or estimate.memory_bytes <= free) and (free_gpu is None or estimate.gpu_bytes <= free_gpu)


def _how_to_shrink(device_bytes: dict[str, int], by_update: bool, advice: Advice, kind: type[EncoderOptions]) -> str:
    """Return the options that shrink the largest item, of the four in their order."""
    encoder, labels, training = advice
    step = f"{training}.micro_batch or {encoder}.tokens.max_tokens"
    options = (
        " or ".join(f"{encoder}.{name}" for name in kind.smaller),
        labels,
        f"{training}.averaging.kind or {training}.validation",
        labels if by_update else step,
    )
    return options[int(np.argmax(list(device_bytes.values())))]


def _is_sharded(table: Any) -> bool:
    """Return whether a process holds some rows of a table only, and scores the texts of all processes with them."""
    return isinstance(table, LabelTable) and table.is_sharded


def _bytes_of(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _weight_bytes(member: _Member) -> int:
    return _bytes_of(member.encoder.parameters()) + _bytes_of(member.head.parameters())


def kept_bytes(encoder: Encoder, width: int, device: torch.device, half: bool) -> int:
    """Return the bytes that autograd keeps of one text of `width` tokens when training on a device."""
    if not any(parameter.requires_grad for parameter in encoder.parameters()):
        return 0
    fill(encoder)
    weights = {parameter.untyped_storage().data_ptr() for parameter in encoder.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    encoder.train()
    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    # With dropout, attention on a CPU keeps a table of all pairs of tokens; on a GPU it does not.
    with _all_kept(encoder) as again, torch.random.fork_rng(devices=[]), _dropout(encoder, device.type == "cpu"), hooks:
        vectors = encoder(torch.zeros(1, width, dtype=torch.long), None)
    total = float(sum(kept.values()))
    del vectors  # until here, autograd holds what was counted
    if again:  # all of one layer, and the inputs of the others
        total *= 1 / max(1, len(encoder.layers())) + _INPUTS
    return int(total * (_BACKWARD if device.type == "cpu" else _HALF if half else 1.0))


@contextmanager
def _all_kept(encoder: Encoder) -> Iterator[bool]:
    """Switch off gradient checkpointing; yield whether the encoder uses it."""
    model: Any = getattr(encoder, "model", None)
    again = bool(getattr(model, "is_gradient_checkpointing", False))
    if again:
        model.gradient_checkpointing_disable()
    try:
        yield again
    finally:
        if again:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})


@contextmanager
def _dropout(encoder: Encoder, on: bool) -> Iterator[None]:
    """Leave dropout on, or switch it off."""
    layers = [] if on else [module for module in encoder.modules() if isinstance(module, nn.Dropout)]
    shares = [layer.p for layer in layers]
    for layer in layers:
        layer.p = 0.0
    try:
        yield
    finally:
        for layer, share in zip(layers, shares, strict=True):
            layer.p = share
