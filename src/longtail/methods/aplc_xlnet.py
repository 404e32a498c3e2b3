"""APLC-XLNet: a transformer, and labels in buckets by frequency whose rare ones share narrow layers behind gates.

The head of frequent labels is always computed, a tail only for the texts that touch it; three learning rates, for
encoder, bottleneck and labels, which the paper found indispensable.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from longtail.data.dataset import Split
from longtail.labels.buckets import BucketOptions, Buckets, build_buckets
from longtail.methods.base import METHODS
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions
from longtail.nn.needs import Advice
from longtail.nn.tagger import MakeHead
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import Run


class APLCXLNetOptions(NetworkOptions):
    """Options of APLC-XLNet."""

    encoder: TransformerOptions = TransformerOptions(n_layers=5, attention_dropout=0.0)
    """What reads the texts; the paper's is the last layer of xlnet-base-cased."""
    buckets: BucketOptions = BucketOptions()
    """Where labels, ordered by frequency, are cut."""
    labels: AdaptiveOptions = AdaptiveOptions()
    """Shape and loss of the label layers."""
    training: TrainingOptions = TrainingOptions(
        epochs=8.0, batch_size=64, rate=1.5e-4, bottleneck_rate=2e-3, head_rate=4e-3
    )
    """How the network is trained."""


@METHODS.register("aplc-xlnet")
class APLCXLNet(NetworkMethod):
    """A transformer with adaptive probabilistic label clusters on top."""

    name = "aplc-xlnet"
    options_class = APLCXLNetOptions
    advice = Advice("encoder", "labels.bottleneck or labels.shrink")

    def _prepare(self, split: Split, run: Run) -> None:
        self.buckets_ = build_buckets(split.labels.texts_per_label(), self.options.buckets)

    def _head(self, width: int) -> Adaptive:
        return Adaptive(width, self.buckets_, self.options.labels)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        buckets = build_buckets(counts, self.options.buckets)
        return lambda width: Adaptive(width, buckets, self.options.labels)

    def _save_parts(self, writer: FolderWriter) -> None:
        writer.arrays("buckets", self.buckets_.arrays())

    def _open_parts(self, folder: Folder) -> None:
        self.buckets_ = Buckets.from_arrays(folder.arrays("buckets"))
