"""Record a trained network as an ONNX graph: from token ids to the numbers of the best labels and their scores.

    ids (B, T) int64, mask (B, T) int64  ->  scores (B, k) float32, labels (B, k) int64, best first

Batch size and length are free. The network runs once on a small example, and what it computes is written down, so only
heads and encoders whose operations do not depend on the values of their inputs can be recorded. Weights are float32.
Where a head finds fewer labels, the rest of a row has label −1 and score −inf.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor, nn

from longtail.errors import ConfigError, MissingExtraError
from longtail.nn.batch import Batch
from longtail.nn.network import Network
from longtail.nn.tagger import Tagger

SHORTEST = 2
"""The least length of a batch: graphs of length 1 would be recorded for that length alone."""
_EXAMPLE = (3, 7)
"""Texts and tokens of the example; both must differ from each other and from 1, or they would be taken as fixed."""
_LARGEST_INSIDE = 1 << 30
"""Weights of more bytes are written beside the graph: an ONNX file holds at most 2 GiB."""

Curve = tuple[Sequence[float], Sequence[float]]
"""Points of a rising curve: scores, and what is shown instead."""


class RecordedNetwork(nn.Module):
    """What is recorded: a network, and the curve that its scores are read from."""

    def __init__(self, network: Network, k: int, curve: Curve | None) -> None:
        super().__init__()
        self.network, self.k = network, min(k, network.head.n_labels)
        points = torch.tensor(curve or ((), ()), dtype=torch.float64)  # (2, n_points)
        self.register_buffer("points", points)
        order = network.head.order
        self.register_buffer("order", None if order is None else torch.from_numpy(order))

    order: Tensor | None
    points: Tensor

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores and numbers of the best labels, (B, k) each."""
        inputs = self.network.read(Batch(input_ids, attention_mask > 0))
        scores, places = self.network.head.recorded_top_k(inputs, self.k)
        filled = places >= 0
        labels = places if self.order is None else self.order[places.clamp(min=0)]
        shown = scores if not self.points.shape[1] else interpolated(scores, self.points).to(scores.dtype)
        return shown.masked_fill(~filled, -torch.inf), labels.masked_fill(~filled, -1)


def interpolated(x: Tensor, points: Tensor) -> Tensor:
    """Return what a curve through `points` (2, n) has at `x`, straight between two points and level outside."""
    knots, values = points
    x = x.to(points.dtype).clamp(knots[0], knots[-1])
    place = (x[..., None] > knots[1:-1]).sum(-1)
    above = (place + 1).clamp(max=len(knots) - 1)
    width = (knots[above] - knots[place]).clamp(min=torch.finfo(points.dtype).tiny)
    result: Tensor = values[place] + (values[above] - values[place]) * ((x - knots[place]) / width)
    return result


def record(tagger: Tagger, file: Path, k: int, curve: Curve | None) -> None:
    """Write the graph of a network that gives the `k` best labels of each text.

    `curve` has the points that scores are read from, by straight lines; None leaves scores as they are.
    """
    network = copy.deepcopy(tagger.network).cpu().float().eval()
    module = RecordedNetwork(network, k, curve).eval()
    shape = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length", min=SHORTEST, max=_longest(tagger))}
    ids = torch.full(_EXAMPLE, tagger.tokeniser.pad_id)
    mask = torch.ones_like(ids).tril(_EXAMPLE[1] - _EXAMPLE[0])  # texts of different lengths
    with torch.no_grad(), _quiet():
        try:
            program = torch.onnx.export(
                module,
                (ids, mask),
                dynamo=True,
                input_names=["input_ids", "attention_mask"],
                output_names=["scores", "labels"],
                dynamic_shapes={"input_ids": shape, "attention_mask": shape},
                verbose=False,
            )
        except ImportError as error:
            raise MissingExtraError(
                f"recording a graph needs {error.name}, not installed here; install with pip install 'longtail[onnx]'"
            ) from error
        except torch.onnx.errors.OnnxExporterError as error:
            encoder, head = (type(part).__name__.lower() for part in (network.encoder, network.head))
            raise ConfigError(
                f"a network must consist of operations that ONNX knows, but torch cannot record encoder {encoder} with "
                f"head {head}; serve the model with longtail serve instead"
            ) from error
    if program is None:
        raise ConfigError("torch recorded no graph; update torch")
    n_bytes = sum(tensor.numel() * tensor.element_size() for tensor in module.state_dict().values())
    program.save(str(file), external_data=n_bytes > _LARGEST_INSIDE)


def _longest(tagger: Tagger) -> int:
    return max(int(tagger.tokeniser.max_tokens), _EXAMPLE[1])


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what torch says of its own progress, and of names of lengths, to itself."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
