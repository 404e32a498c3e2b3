"""Base of methods that are one network: an encoder and a head, trained together.

A method names its encoder in its options and makes the head (`_head`). What a head needs beyond the width of text
vectors is made in `_prepare`, written by `_save_prepared` and read by `_open_prepared`. Methods that score every label
(`DenseMethod`) need no more than options.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.explain.attribution import Attribution
from longtail.explain.words import TextWords
from longtail.methods.base import Method, MethodOptions, ResourceEstimate
from longtail.nn.gradients import integrated_gradients
from longtail.nn.heads.base import HEADS, Head, LabelSpace
from longtail.nn.heads.dense import DenseHeadOptions
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.network import Network
from longtail.nn.resources import Advice, estimate_network
from longtail.nn.tagger import MakeHead, MakeNetwork, NetworkPlan, Tagger, rows_held_out
from longtail.nn.training.options import TrainingOptions
from longtail.options import Options
from longtail.persist import Folder, FolderWriter
from longtail.run.run import PRECISIONS, Run
from longtail.scores.new_labels import of_unit_length
from longtail.text.readings import TextReadings
from longtail.types import TopK


class NetworkOptions(MethodOptions):
    """Options of every method that is one network; each adds an `encoder`."""

    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout of the text vector."""
    training: TrainingOptions = TrainingOptions()
    """How the network is trained."""


class NetworkMethod(Method):
    """One encoder, one head."""

    precisions = PRECISIONS
    keeps_texts_out = True
    trains_networks = True
    text_options = ("encoder",)
    lists_come_from = "a network and labels of similar training texts (`teacher=false` does without these)"
    advice: ClassVar[Advice] = Advice("encoder")
    """Which options make it smaller."""
    network: ClassVar[MakeNetwork] = Network
    """What puts encoder and head together."""

    @abstractmethod
    def _head(self, width: int) -> Head:
        """Return the head for text vectors of a width."""

    @abstractmethod
    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        """Return what makes a head for labels with these numbers of training texts: for counting costs."""

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        """Make what the head needs to know about labels."""

    def _save_prepared(self, writer: FolderWriter) -> None:
        """Write what `_prepare` made."""

    def _open_prepared(self, folder: Folder) -> None:
        """Read what `_save_prepared` wrote."""

    @property
    def _plan(self) -> NetworkPlan:
        options = self.options
        return NetworkPlan(options.encoder, options.training, options.dropout, options.seed)

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        self._prepare(split, texts, run)
        network = type(self).network
        self.tagger_ = Tagger.fit(texts, split.labels, self._plan, self._head, run=run, make_network=network)

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        return self.tagger_.top_k(texts, k, run)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        weights, why_not = integrated_gradients(self.tagger_, texts, words, label, run)
        if weights is None:
            return self._occlusion(words, label, run, note=why_not)
        return Attribution("integrated gradients", weights)

    def _validation_rows(self, n_texts: int) -> NDArray[np.int64]:
        return rows_held_out([self._plan], n_texts)

    def _text_vectors(self, texts: TextReadings, run: Run) -> Any:
        return None if self.tagger_.network.head.reads_states else of_unit_length(self.tagger_.vectors(texts, run))

    def _save(self, writer: FolderWriter) -> None:
        self.tagger_.save(writer, "network")
        self._save_prepared(writer)

    def _open(self, folder: Folder) -> None:
        self._open_prepared(folder)
        self.tagger_ = Tagger.load(folder, "network", self._head, type(self).network)

    def exported_network(self) -> Tagger:
        """Return the network."""
        return self._recordable(self.tagger_)

    def describe(self) -> dict[str, Any]:
        """Return the facts of the network."""
        return {"networks": [self.tagger_.describe()]}

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return the memory, disk and, with `measure`, the time that training on `split` takes."""
        counts = split.labels.texts_per_label()
        return estimate_network(
            split,
            [self.options.encoder],
            self._outline(counts[counts > 0]),
            self.options.training,
            advice=self.advice,
            measure=measure,
            threads=threads,
        )


class DenseOptions(NetworkOptions):
    """Options of every method that scores every label."""

    loss: Literal["bce", "softmax"] = "bce"
    """Each label by itself (binary cross-entropy), or a softmax over all labels."""
    labels: LabelTableOptions = LabelTableOptions()
    """How the labels' weights are kept and trained."""


class DenseMethod(NetworkMethod):
    """One encoder, and a head that scores every label."""

    head: ClassVar[str] = "dense"
    """The head's name in `HEADS`."""

    def _prepare(self, split: Split, texts: TextReadings, run: Run) -> None:
        self.n_labels_ = split.labels.n_labels

    def _open_prepared(self, folder: Folder) -> None:
        self.n_labels_ = len(self.scored_labels_)

    def _head(self, width: int) -> Head:
        return HEADS.get(self.head).create(width, LabelSpace(self.n_labels_), self._head_options())

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        return lambda width: HEADS.get(self.head).create(width, LabelSpace(len(counts)), self._head_options())

    def _head_options(self) -> Options:
        """Return the options of the head."""
        return DenseHeadOptions(**dict(self.options.labels), loss=self.options.loss)
