"""A method made of the plug-in's own encoder and head; any other encoder of vectors may stand in for the first."""

from __future__ import annotations

from longtail.methods.network import DenseMethod, NetworkOptions
from longtail.nn.encoders.base import AnyEncoderOptions
from longtail.options import Options
from longtail_plugin.encoder import PeakOptions
from longtail_plugin.head import LowRankOptions


class PeakNetworkOptions(NetworkOptions):
    """Options of the method."""

    encoder: AnyEncoderOptions = PeakOptions()
    """What reads the texts, by kind."""
    labels: LowRankOptions = LowRankOptions()
    """Shape of the head."""


class PeakNetwork(DenseMethod):
    """Maxima of word vectors, with all labels behind a narrow layer."""

    name = "peak-network"
    options_class = PeakNetworkOptions
    head = "low-rank"

    def _head_options(self) -> Options:
        labels: Options = self.options.labels
        return labels
