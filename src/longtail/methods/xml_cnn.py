"""XML-CNN: filters over neighbouring words, the highest of each part of a text, a narrow layer, every label on top."""

from __future__ import annotations

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.cnn import CNNOptions
from longtail.nn.training import TrainingOptions
from longtail.text.vectors import TRAIN, WordVectorOptions


class XMLCNNOptions(DenseOptions):
    """Options of XML-CNN."""

    encoder: CNNOptions = CNNOptions(vectors=WordVectorOptions(source=TRAIN, width=100))
    """Words, filters, and the narrow layer; without a file, word vectors are made of the training texts."""
    training: TrainingOptions = TrainingOptions(batch_size=64, rate=2e-3, decay=0.0)
    """How the network is trained."""


@METHODS.register("xml-cnn")
class XMLCNN(DenseMethod):
    """Filters over words with every label on top."""

    name = "xml-cnn"
    options_class = XMLCNNOptions
