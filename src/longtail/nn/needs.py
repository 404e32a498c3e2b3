"""What training a network will take: memory and disk by counting, time by a few steps on this machine.

    encoder     4 bytes a weight, and 12 more for gradient and two moments where it is trained
    labels      tables: their storage, and the moments of their optimiser; other heads as the encoder
    averages    4 bytes a trained weight, and as much again for the best weights
    activations what autograd keeps of one text of the widest batch, times the texts of a micro-batch

Shapes come from the encoder's outline and from the head itself, both without weights. What autograd keeps is counted
by running one text through an encoder of zeros: that is right for every encoder, and the weights' values do not
matter. On a GPU, large products are in half precision and attention keeps no table of all pairs: of the bytes
without dropout, `_HALF` remain (measured: BERT-base, 128 tokens, 256 texts, 12.6 GiB with weights and optimiser).

After the backward pass activations are gone, and the labels' update has that memory. So the peak is the larger of both.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from longtail.data.dataset import Split
from longtail.engines.local import LocalEngine
from longtail.machine import Needs, free_memory_bytes
from longtail.nn.devices import choose_device, choose_precision, free_gpu_bytes
from longtail.nn.encoders.base import Encoder, EncoderOptions
from longtail.nn.encoders.choice import ENCODERS
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.network import Network
from longtail.nn.tagger import VALIDATION_TEXTS, MakeHead, MakeNetwork
from longtail.nn.training import TrainingOptions
from longtail.nn.trial import batch_widths, fill, seconds_a_step
from longtail.text.tokens import TokenRows, tokenise

_SAMPLE = 1000
_PROGRAMS = {"cpu": 700 << 20, "cuda": 3 << 30}
"""Python, torch and what it loads, in the machine's memory."""
_CONTEXT = 600 << 20
"""What CUDA itself takes of a GPU."""
_HALF = 0.6
_BACKWARD = 1.25
"""On a CPU: with what the backward pass and the memory's allocator take beside."""
_INPUTS = 1 / 16
"""Of what a layer keeps, the part that it began with."""
_FORWARD = 3
"""A forward pass takes a third of a step."""
_UPDATE = 8
"""Arrays of four bytes a number that the update of a chunk of labels has at once."""


class Advice(NamedTuple):
    """Which options of a method make its networks smaller."""

    encoder: str = "encoders.*"
    """Where it has its encoders."""
    labels: str = "labels.storage, labels.optimizer or labels.chunk"
    """What makes the labels smaller."""
    training: str = "training"
    """Where it has the options of training."""


_ADVICE = Advice()


class _Member(NamedTuple):
    """One network before its training."""

    encoder: Encoder
    head: Head
    tokens: TokenRows
    """Of a sample."""
    rows: NDArray[np.int64]
    """Which texts the sample is."""
    tokenise_s: float
    """A text."""


def neural_needs(
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
) -> Needs:
    """What it takes to train `n_seeds` networks for each encoder, one after the other.

    `n_readings`: how often all texts are read once more by the trained network. Time is measured where memory suffices.
    """
    counted, weights, seconds = [], [], []
    for options in encoders:
        member = _member(split, options, make_head)
        counted.append(_counted(member, split, training, advice))
        weights.append(_weight_bytes(member))
        if measure and _fits(counted[-1]):
            network = make_network(member.encoder, make_head(member.encoder.width), 0.0)
            seconds.append(_seconds(member, network, split, training, n_readings, LocalEngine(threads)))
    largest = max(counted, key=lambda needs: (needs.gpu_bytes, needs.memory_bytes))
    kept = n_seeds * sum(weights) - max(weights)  # all networks stay until the model is saved
    total_s = n_seeds * sum(seconds) if len(seconds) == len(encoders) else None
    # A checkpoint stays until the next one stands; at the end there are the last ones and the model.
    several = total_s is None or total_s > training.checkpoint_s
    more = max(n_seeds * sum(weights), largest.disk_bytes if several else 0)
    return replace(
        largest,
        memory_bytes=largest.memory_bytes + (0 if largest.gpu_bytes else kept),
        gpu_bytes=largest.gpu_bytes + (kept if largest.gpu_bytes else 0),
        disk_bytes=n_seeds * sum(one.disk_bytes for one in counted) + more,
        seconds=total_s,
    )


def text_width(split: Split, encoders: Sequence[EncoderOptions]) -> int:
    """Numbers of the widest text vector."""
    return max(_member(split, options, lambda width: Dense(width, 2)).encoder.width for options in encoders)


def _member(split: Split, options: EncoderOptions, make_head: MakeHead) -> _Member:
    rows = np.linspace(0, len(split) - 1, min(len(split), _SAMPLE)).astype(np.int64)
    texts = split.take(rows).texts
    encoder = ENCODERS[options.kind].outline(options, texts, len(split))  # type: ignore[attr-defined]
    with torch.device("meta"):
        head = make_head(encoder.width)
    start = time.perf_counter()
    tokens = tokenise(texts, encoder.tokeniser, options.tokens)
    return _Member(encoder, head, tokens, rows, (time.perf_counter() - start) / len(rows))


def _counted(member: _Member, split: Split, training: TrainingOptions, advice: Advice) -> Needs:
    """Memory and disk of one network."""
    device = choose_device(training.device)
    half = choose_precision(training.precision, device) != "no"
    tables, words = [*member.head.tables().values()], [*member.encoder.tables().values()]
    of_encoder = _bytes_of(p for p in member.encoder.parameters() if p.requires_grad)
    trained = of_encoder + _bytes_of(p for p in member.head.parameters() if p.requires_grad)  # tables ask for none
    bulk = (*member.head.bulk.values(), *(table.weight for table in words))
    averaged = trained + 4 * sum(parameter.numel() for parameter in bulk)
    copies = (training.averaging.kind != "none") + bool(training.validation)
    weights, moments = _weight_bytes(member), sum(table.moment_bytes for table in (*tables, *words))
    n_texts = min(training.micro_batch or training.batch_size, training.batch_size, len(split))
    widest = int(batch_widths(member.tokens, len(split), training, member.encoder.tokeniser.max_tokens).max())
    activations = n_texts * kept_bytes(member.encoder, widest, device, half) + member.head.held_bytes(n_texts, widest)
    activations += trained + (trained // 2 if half else 0)  # gradients, and weights in half precision
    update = max((_UPDATE * 4 * table.n_at_once * table.weight.shape[1] for table in (*tables, *words)), default=0)
    swapped = averaged if training.validation else 0
    parts = {
        "encoder and its optimiser": _bytes_of(member.encoder.parameters()) + 2 * of_encoder,
        "labels and their optimiser": _bytes_of(member.head.parameters()) + moments + 2 * (trained - of_encoder),
        "averages of weights": copies * averaged,
        "a step": max(activations, update, swapped),
    }
    tokens = int(len(split) * member.tokens.lengths().mean() * member.tokens.ids.itemsize)
    host = {"texts and tokens": split.texts.nbytes + 2 * tokens, "programs": _PROGRAMS[device.type]}
    checkpoint = weights + 2 * trained + moments + copies * averaged
    disk = checkpoint + tokens
    relief = _relief(parts, update > activations, advice, member.encoder.options_class)
    if device.type == "cuda":
        memory = sum(host.values()) + max(weights, 2 * trained)  # made on the host; a checkpoint is copied there
        return Needs(memory, disk, relief, sum(parts.values()) + _CONTEXT, parts=tuple(parts.items()))
    return Needs(sum(parts.values()) + sum(host.values()), disk, relief, parts=(*parts.items(), *host.items()))


def _seconds(
    member: _Member,
    network: Network,
    split: Split,
    training: TrainingOptions,
    n_readings: float,
    engine: LocalEngine,
) -> float:
    """Time of one network: tokens, steps, and what is read beside."""
    n_held = min(VALIDATION_TEXTS, int(len(split) * training.validation))
    size = min(training.batch_size, len(split) - n_held)
    epoch = (len(split) - n_held) / size
    n_steps = training.n_steps or max(1, math.ceil(training.epochs * epoch))
    n_steps = max(1, n_steps - round(training.epochs_left_out * epoch))
    texts = member.tokens, split.labels.take(member.rows)
    step_s = seconds_a_step(network, *texts, len(split), training, engine)
    n_validations = (training.validations or max(1, round(training.epochs))) if n_held else 0
    n_read = n_readings * len(split) + n_validations * n_held
    return len(split) * member.tokenise_s + n_steps * step_s + n_read * step_s / size / _FORWARD


def _fits(needs: Needs) -> bool:
    free, free_gpu = free_memory_bytes(), free_gpu_bytes()
    return (free is None or needs.memory_bytes <= free) and (free_gpu is None or needs.gpu_bytes <= free_gpu)


def _relief(parts: dict[str, int], by_update: bool, advice: Advice, kind: type[EncoderOptions]) -> str:
    """The options that help with what takes most."""
    encoder, labels, training = advice
    step = f"{training}.micro_batch or {encoder}.tokens.max_tokens"
    relief = (
        " or ".join(f"{encoder}.{name}" for name in kind.smaller),
        labels,
        f"{training}.averaging.kind or {training}.validation",
        labels if by_update else step,
    )
    return relief[int(np.argmax(list(parts.values())))]


def _bytes_of(tensors: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _weight_bytes(member: _Member) -> int:
    return _bytes_of(member.encoder.parameters()) + _bytes_of(member.head.parameters())


def kept_bytes(encoder: Encoder, width: int, device: torch.device, half: bool) -> int:
    """What autograd keeps of one text of `width` tokens, in bytes, on the device where training is."""
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
        made = encoder(torch.zeros(1, width, dtype=torch.long), None)
    total = float(sum(kept.values()))
    del made  # until here, autograd holds what was counted
    if again:  # all of one layer, and what the others begin with
        total *= 1 / max(1, len(encoder.layers())) + _INPUTS
    return int(total * (_BACKWARD if device.type == "cpu" else _HALF if half else 1.0))


@contextmanager
def _all_kept(encoder: Encoder) -> Iterator[bool]:
    """Without computing states again in the backward pass; whether the encoder does so."""
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
    """With dropout as it is, or without any."""
    layers = [] if on else [module for module in encoder.modules() if isinstance(module, nn.Dropout)]
    shares = [layer.p for layer in layers]
    for layer in layers:
        layer.p = 0.0
    try:
        yield
    finally:
        for layer, share in zip(layers, shares, strict=True):
            layer.p = share
