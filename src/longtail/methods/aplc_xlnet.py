"""APLC-XLNet: a transformer, and labels in buckets by frequency whose rare ones share narrow layers behind gates.

The head of frequent labels is always computed, a tail only for the texts that touch it; three learning rates, for
encoder, bottleneck and labels, which the paper found indispensable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pydantic import Field

from longtail.data.dataset import Split
from longtail.labels.buckets import BucketOptions, Buckets, build_buckets
from longtail.methods.base import METHODS, Method, MethodOptions, Needs
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.adaptive import Adaptive, AdaptiveOptions
from longtail.nn.needs import Advice, neural_needs
from longtail.nn.tagger import Tagger, columns_of
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import PRECISIONS, Run
from longtail.types import TopK

_ADVICE = Advice("encoder", "labels.bottleneck or labels.shrink")


class APLCXLNetOptions(MethodOptions):
    """Options of APLC-XLNet."""

    encoder: TransformerOptions = TransformerOptions()
    """What reads the texts; the paper's is xlnet-base-cased."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of the text vector, before the bottleneck."""
    buckets: BucketOptions = BucketOptions()
    """Where labels, ordered by frequency, are cut."""
    labels: AdaptiveOptions = AdaptiveOptions()
    """Shape and loss of the label layers."""
    training: TrainingOptions = TrainingOptions()
    """How the network is trained."""


@METHODS.register("aplc-xlnet")
class APLCXLNet(Method):
    """A transformer with adaptive probabilistic label clusters on top."""

    name = "aplc-xlnet"
    options_class = APLCXLNetOptions
    precisions = PRECISIONS

    def _fit(self, split: Split, run: Run) -> None:
        options: APLCXLNetOptions = self.options
        self.buckets_ = build_buckets(split.labels.texts_per_label(), options.buckets)
        parts = options.encoder, self._head, options.training, options.dropout
        self.tagger_ = Tagger.fit(split.texts, split.labels, *parts, options.seed, run)

    def _head(self, width: int) -> Adaptive:
        return Adaptive(width, self.buckets_, self.options.labels)

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        return self.tagger_.top_k(texts, k, run)

    def _save(self, writer: FolderWriter) -> None:
        self.tagger_.save(writer, "network")
        writer.arrays("buckets", self.buckets_.arrays())

    def _open(self, folder: Folder) -> None:
        self.buckets_ = Buckets.from_arrays(folder.arrays("buckets"))
        self.tagger_ = Tagger.load(folder, "network", self._head)

    def describe(self) -> dict[str, Any]:
        """Size and cost beside a dense layer (the paper's equations 9 and 14)."""
        return {"networks": [self.tagger_.describe()]}

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: the fields one after the other."""
        return {"encoder": cls.options_class.of(options, source=cls.name).encoder.reading(fields)}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return columns_of([self.options.encoder])

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        options: APLCXLNetOptions = self.options
        counts = split.labels.texts_per_label()
        buckets = build_buckets(counts[counts > 0], options.buckets)
        parts = [options.encoder], lambda width: Adaptive(width, buckets, options.labels), options.training
        return neural_needs(split, *parts, advice=_ADVICE, measure=measure, threads=threads)
