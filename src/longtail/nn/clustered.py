"""A network together with the label clusters that it searches: the member of an ensemble of networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longtail.labels.index import LabelIndex
from longtail.nn.tagger import Tagger
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.types import TopK


@dataclass(frozen=True, eq=False)
class ClusteredTagger:
    """A trained network and its clusters."""

    tagger: Tagger
    index: LabelIndex | None
    """None where every label is scored."""

    def top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        """Return the k best labels of each text."""
        return self.tagger.top_k(texts, k, run)

    def save(self, writer: FolderWriter, name: str) -> None:
        """Write into a model folder."""
        self.tagger.save(writer, name)
        if self.index is not None:
            writer.arrays(_index_name(name), self.index.arrays())

    def describe(self) -> dict[str, Any]:
        """Return what `longtail info` shows of the network."""
        return self.tagger.describe()


def load_index(folder: Folder, name: str, n_labels: int) -> LabelIndex | None:
    """Return the clusters of a saved `ClusteredTagger`; None where every label is scored."""
    file = _index_name(name)
    return LabelIndex.from_arrays(folder.arrays(file), n_labels) if f"{file}.safetensors" in folder else None


def _index_name(name: str) -> str:
    """Return `index-0` for `member-0`, the name that it has in model folders."""
    return name.replace("member", "index")
