"""XML-CNN: filters over neighbouring words, the highest of each part of a text, a narrow layer, every label on top.

By default with fewer filters and narrower words than the paper has, for a CPU, and with word vectors that are made from
the training texts: from random ones filters learn much less.
"""

from __future__ import annotations

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.cnn import CNNOptions
from longtail.nn.training import TrainingOptions
from longtail.text.vectors import TRAIN, WordVectorOptions


class XMLCNNOptions(DenseOptions):
    """Options of XML-CNN."""

    encoder: CNNOptions = CNNOptions(n_filters=64, vectors=WordVectorOptions(source=TRAIN, width=100))
    """Words, filters, and the narrow layer."""
    training: TrainingOptions = TrainingOptions(batch_size=64, rate=2e-3, decay=0.0)
    """How the network is trained."""


@METHODS.register("xml-cnn")
class XMLCNN(DenseMethod):
    """Filters over words with every label on top."""

    name = "xml-cnn"
    options_class = XMLCNNOptions
