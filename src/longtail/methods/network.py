"""What methods have in common that are one network: an encoder and a head, trained at once.

A method says which encoder its options begin with, and makes the head (`_head`); a head that needs more than a width
gets it in `_prepare`, which is written and read by `_save_parts` and `_open_parts`. Methods that score every label
(`DenseMethod`) say no more than their options.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from longtail.data.dataset import Split
from longtail.methods.base import Method, MethodOptions, Needs
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.table import TableOptions
from longtail.nn.needs import Advice, neural_needs
from longtail.nn.network import Network
from longtail.nn.tagger import MakeHead, MakeNetwork, Tagger, columns_of
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import PRECISIONS, Run
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
    advice: ClassVar[Advice] = Advice("encoder")
    """Which options make it smaller."""
    network: ClassVar[MakeNetwork] = Network
    """What puts encoder and head together."""

    @abstractmethod
    def _head(self, width: int) -> Head:
        """The head above text vectors of a width."""

    @abstractmethod
    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        """A head of the same shape for labels with so many training texts each: for counting costs."""

    def _prepare(self, split: Split, run: Run) -> None:
        """Make what the head needs to know of labels."""

    def _save_parts(self, writer: FolderWriter) -> None:
        """Write what `_prepare` made."""

    def _open_parts(self, folder: Folder) -> None:
        """Read it again."""

    def _fit(self, split: Split, run: Run) -> None:
        self._prepare(split, run)
        options = self.options
        parts = options.encoder, self._head, options.training, options.dropout, options.seed, run
        self.tagger_ = Tagger.fit(split.texts, split.labels, *parts, make_network=type(self).network)

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        return self.tagger_.top_k(texts, k, run)

    def _save(self, writer: FolderWriter) -> None:
        self.tagger_.save(writer, "network")
        self._save_parts(writer)

    def _open(self, folder: Folder) -> None:
        self._open_parts(folder)
        self.tagger_ = Tagger.load(folder, "network", self._head, type(self).network)

    def describe(self) -> dict[str, Any]:
        """See `Method.describe`."""
        return {"networks": [self.tagger_.describe()]}

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: the fields one after the other."""
        given: Any = cls.options_class.of(options, source=cls.name)
        return {"encoder": given.encoder.reading(fields)}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        return columns_of([self.options.encoder])

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`."""
        counts = split.labels.texts_per_label()
        parts = [self.options.encoder], self._outline(counts[counts > 0]), self.options.training
        return neural_needs(split, *parts, advice=self.advice, measure=measure, threads=threads)


class DenseOptions(NetworkOptions):
    """Options of every method that scores every label."""

    loss: Literal["bce", "softmax"] = "bce"
    """Each label by itself (binary cross-entropy), or a softmax over all labels."""
    labels: TableOptions = TableOptions()
    """How the labels' weights are kept and trained."""


class DenseMethod(NetworkMethod):
    """One encoder, one row of weights a label."""

    def _prepare(self, split: Split, run: Run) -> None:
        self.n_labels_ = split.labels.n_labels

    def _open_parts(self, folder: Folder) -> None:
        self.n_labels_ = len(self.vocabulary_)

    def _head(self, width: int) -> Dense:
        return Dense(width, self.n_labels_, self.options.labels, self.options.loss)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        return lambda width: Dense(width, len(counts), self.options.labels, self.options.loss)
