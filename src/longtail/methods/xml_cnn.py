"""XML-CNN: filters over neighbouring words, dynamic max pooling, a bottleneck layer, every label on top.

By default it has fewer filters and narrower word vectors than the paper's, for a CPU, and word vectors trained on the
training texts: with random ones filters learn much less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.cnn import CNNOptions
from longtail.nn.training.options import TrainingOptions
from longtail.text.vectors import TRAIN, WordVectorOptions

if TYPE_CHECKING:
    from longtail.methods.keywords import XMLCNNKeywords


class XMLCNNOptions(DenseOptions):
    """Options of XML-CNN."""

    encoder: CNNOptions = CNNOptions(n_filters=64, vectors=WordVectorOptions(source=TRAIN, width=100))
    """Words, filters, and the bottleneck layer."""
    training: TrainingOptions = TrainingOptions(batch_size=64, rate=2e-3, decay=0.0)
    """How the network is trained."""


@METHODS.register("xml-cnn")
class XMLCNN(DenseMethod):
    """Filters over words with every label on top."""

    options_class = XMLCNNOptions

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[XMLCNNKeywords]) -> None: ...
