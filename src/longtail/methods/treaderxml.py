"""TReaderXML: a network that reads, beside a text, which labels its nearest training texts have, and their parents.

The labels around a text (its scope, the paper's teacher knowledge) narrow down where its own should be. The paper's
network has two attention readers over word vectors; a transformer can read the same scope behind the text instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from longtail.data.dataset import Split
from longtail.labels.teacher import Teacher, TeacherOptions
from longtail.linear.needs import pool_bytes
from longtail.methods.base import METHODS, Needs
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.nn.encoders.reader import ReaderOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.base import Head
from longtail.nn.heads.dense import Dense
from longtail.nn.heads.softmax_sigmoid import SoftmaxSigmoid
from longtail.nn.heads.table import TableOptions
from longtail.nn.nearest import search_for
from longtail.nn.tagger import MakeHead, Tagger, split_rows
from longtail.nn.training import TrainingOptions
from longtail.persist import Folder, FolderWriter
from longtail.run import Run
from longtail.text.tokens import TokenOptions
from longtail.text.vectors import TRAIN, WordVectorOptions
from longtail.types import TopK


class TReaderXMLOptions(NetworkOptions):
    """Options of TReaderXML."""

    encoder: Annotated[ReaderOptions | TransformerOptions, Field(discriminator="kind")] = ReaderOptions(
        tokens=TokenOptions(max_tokens=256), vectors=WordVectorOptions(source=TRAIN, width=100), bottleneck=256
    )
    """What reads the texts and their scopes: two attention readers, or a transformer."""
    teacher: bool = True
    """Whether scopes are read; without, the network reads texts alone."""
    scope: TeacherOptions = TeacherOptions()
    """Which labels make the scope of a text."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector."""
    loss: Literal["paper", "fixed"] = "fixed"
    """`fixed`: each label by itself (BCE of its logit). `paper`: a softmax over labels, then a sigmoid of that."""
    labels: TableOptions = TableOptions()
    """How the labels' weights are kept and trained; `fixed` only."""
    training: TrainingOptions = TrainingOptions(
        epochs=12.0, batch_size=64, rate=3e-3, word_rate=2e-2, head_rate=1e-2, decay=0.0
    )
    """How the network is trained; these rates are for word vectors of its own. A transformer wants others
    (`rate` 1e-4, `head_rate` 2e-3)."""

    @model_validator(mode="after")
    def _scope_can_be_read(self) -> Self:
        fault = self.encoder.scope_fault() if self.teacher else ""
        if fault:
            raise ValueError(f"encoder.{fault}")
        return self

    @model_validator(mode="after")
    def _votes_have_a_place(self) -> Self:
        if self.loss == "paper" and self.teacher and self.scope.votes:
            raise ValueError(
                f"scope.votes must be 0 with loss 'paper', where they have no place, got {self.scope.votes}"
            )
        return self


@METHODS.register("treaderxml")
class TReaderXML(NetworkMethod):
    """A network that is shown the labels of a text's nearest training texts."""

    name = "treaderxml"
    options_class = TReaderXMLOptions

    def _fit(self, split: Split, run: Run) -> None:
        options: TReaderXMLOptions = self.options
        self.n_labels_, scope = split.labels.n_labels, None
        self.teacher_: Teacher | None = None
        if options.teacher:
            kept, _ = split_rows(len(split), options.training, options.seed)
            how = options.seed, run.within("teacher"), search_for(options.scope)
            self.teacher_, scope = Teacher.fit(split, options.scope, kept, *how)
        parts = self._encoder, self._head, options.training, options.dropout, options.seed, run
        self.tagger_ = Tagger.fit(split.texts, split.labels, *parts, scope=scope)

    def _top_k(self, texts: pa.Table, features: Any | None, k: int, run: Run) -> TopK:
        scope = self.teacher_.scope(texts, features, run) if self.teacher_ else None
        return self.tagger_.top_k(texts, k, run, scope)

    @property
    def _encoder(self) -> ReaderOptions | TransformerOptions:
        """Without a teacher, nothing that would read it."""
        encoder: ReaderOptions | TransformerOptions = self.options.encoder
        alone = isinstance(encoder, ReaderOptions) and not self.options.teacher
        return encoder.model_copy(update={"scope_words": 0}) if alone else encoder

    def _head(self, width: int) -> Head:
        return self._head_of(width, self.n_labels_)

    def _head_of(self, width: int, n_labels: int) -> Head:
        paper = self.options.loss == "paper"
        return SoftmaxSigmoid(width, n_labels) if paper else Dense(width, n_labels, self.options.labels)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        return lambda width: self._head_of(width, len(counts))

    def _save_parts(self, writer: FolderWriter) -> None:
        if self.teacher_:
            self.teacher_.save(writer)

    def _open_parts(self, folder: Folder) -> None:
        self.n_labels_ = len(self.vocabulary_)
        self.teacher_ = None
        if self.options.teacher:
            scope = self.options.scope
            self.teacher_ = Teacher.load(folder, scope, self.vocabulary_, search_for(scope))

    @classmethod
    def reading(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """See `Method.reading`: the fields one after the other, also where texts are compared."""
        points = cls.options_class.of(options, source=cls.name).scope.points
        compared = {"kind": points.kind, **points.reading(fields)}
        return {**super().reading(fields, options), "scope": {"points": compared}}

    @property
    def columns(self) -> tuple[str, ...]:
        """See `Method.columns`."""
        compared = self.options.scope.points.columns if self.options.teacher else ()
        return tuple(dict.fromkeys((*super().columns, *compared)))

    @property
    def optional_columns(self) -> tuple[str, ...]:
        """See `Method.optional_columns`."""
        return tuple(self.options.scope.points.optional_columns) if self.options.teacher else ()

    def needs(self, split: Split, measure: bool = False, threads: int | None = None) -> Needs:
        """See `Method.needs`; the pool of the teacher is held beside the network."""
        network = super().needs(split, measure, threads)
        pool = pool_bytes(split, self.options.scope) if self.options.teacher else 0
        parts = network.parts if network.gpu_bytes else (*network.parts, ("pool", pool))
        memory, disk = network.memory_bytes + 2 * pool, network.disk_bytes + pool
        return replace(network, memory_bytes=memory, disk_bytes=disk, parts=parts)
