"""APLC-XLNet: a transformer with labels in buckets by frequency; buckets of rare labels have narrow layers and a gate.

The bucket of frequent labels is always computed, a tail only for the texts that have labels in it. Encoder, bottleneck
and labels have learning rates of their own, which the paper found indispensable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.labels.buckets import BucketOptions, Buckets, build_buckets
from longtail.methods.base import METHODS
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions
from longtail.nn.resources import Advice
from longtail.nn.tagger import MakeHead
from longtail.nn.training.options import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.readings import TextReadings

if TYPE_CHECKING:
    from longtail.methods.keywords import APLCXLNetKeywords


class APLCXLNetOptions(NetworkOptions):
    """Options of APLC-XLNet."""

    encoder: TransformerOptions = TransformerOptions(n_layers=5, attention_dropout=0.0)
    """What reads the texts; the paper's is the last layer of xlnet-base-cased."""
    buckets: BucketOptions = BucketOptions()
    """Where labels, ordered by frequency, are divided."""
    labels: AdaptiveOptions = AdaptiveOptions()
    """Shape and loss of the label layers."""
    training: TrainingOptions = TrainingOptions(
        epochs=8.0, batch_size=64, rate=1.5e-4, bottleneck_rate=2e-3, head_rate=4e-3
    )
    """How the network is trained."""


@METHODS.register("aplc-xlnet")
class APLCXLNet(NetworkMethod):
    """A transformer with adaptive probabilistic label clusters on top."""

    options_class = APLCXLNetOptions
    advice = Advice("encoder", "labels.bottleneck or labels.shrink")

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[APLCXLNetKeywords]) -> None: ...

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.buckets_ = build_buckets(split.labels.texts_per_label(), self.options.buckets)

    def _head(self, width: int) -> Adaptive:
        return Adaptive(width, self.buckets_, self.options.labels)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        buckets = build_buckets(counts, self.options.buckets)
        return lambda width: Adaptive(width, buckets, self.options.labels)

    def _save_prepared(self, writer: FolderWriter) -> None:
        writer.arrays("buckets", self.buckets_.arrays())

    def _open_prepared(self, folder: Folder) -> None:
        self.buckets_ = Buckets.from_arrays(folder.arrays("buckets"), len(self.scored_labels_))
