"""XML-CNN: filters over neighbouring words, the highest of each part of a text, a narrow layer, every label on top."""

from __future__ import annotations

from longtail.methods.base import METHODS
from longtail.methods.network import DenseMethod, DenseOptions
from longtail.nn.encoders.cnn import CNNOptions


class XMLCNNOptions(DenseOptions):
    """Options of XML-CNN."""

    encoder: CNNOptions = CNNOptions()
    """Words, filters, and the narrow layer."""


@METHODS.register("xml-cnn")
class XMLCNN(DenseMethod):
    """Filters over words with every label on top."""

    name = "xml-cnn"
    options_class = XMLCNNOptions
