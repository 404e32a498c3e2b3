"""Which network a method can hand over as a whole: its lists are those of that network alone.

A method of one network returns it; all others say by what their lists are made, and refuse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from longtail.errors import ConfigError

if TYPE_CHECKING:
    from longtail.nn.tagger import Tagger


class Exporting:
    """Mixin that refuses; methods of one network override `exported_network`."""

    name: ClassVar[str]
    lists_come_from: ClassVar[str] = "parts of several kinds"
    """What makes the lists of the method, for the error."""

    def _recordable(self, tagger: Tagger) -> Tagger:
        """Return a network; raise if its head searches labels step by step."""
        head = tagger.network.head
        if not head.recordable:
            raise ConfigError(
                "a network must score labels in one go to be exported to ONNX, but head "
                f"{type(head).__name__.lower()} of method {self.name} searches them step by step; use longtail serve"
            )
        return tagger

    def exported_network(self) -> Tagger:
        """Return the trained network whose lists are the method's; raise if there is none."""
        raise ConfigError(
            f"a model must be one network to be exported to ONNX, but lists of method {self.name} come from "
            f"{self.lists_come_from}; serve it with longtail serve, or train a network, such as lightxml/laptop"
        )
