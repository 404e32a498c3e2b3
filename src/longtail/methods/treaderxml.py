"""TReaderXML: a network that reads a text together with the labels of its nearest training texts, and their parents.

These labels (the scope of a text, the paper's teacher knowledge) narrow down which labels it may have. The paper's
network has two attention readers over word vectors; a transformer can read the same scope behind the text instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from longtail.data.dataset import Split
from longtail.explain.attribution import Attribution
from longtail.explain.words import TextWords
from longtail.linear.resources import pool_bytes
from longtail.methods.base import METHODS, ResourceEstimate
from longtail.methods.network import NetworkMethod, NetworkOptions
from longtail.neighbours.teacher import Teacher, TeacherOptions
from longtail.nn.encoders.reader import ReaderOptions
from longtail.nn.encoders.transformer import TransformerOptions
from longtail.nn.heads.base import HEADS, Head, LabelSpace
from longtail.nn.heads.table import LabelTableOptions
from longtail.nn.nearest import search_for
from longtail.nn.tagger import MakeHead, Tagger, split_rows
from longtail.nn.training.options import TrainingOptions
from longtail.options import Ablation
from longtail.persist import Folder, FolderWriter
from longtail.run.run import Run
from longtail.text.readings import TextReadings
from longtail.text.tokens import TokenOptions
from longtail.text.vectors import TRAIN, WordVectorOptions
from longtail.types import TopK

READS_SCOPES = "The network reads the labels of similar texts beside the text, so words were left out one by one."

if TYPE_CHECKING:
    from longtail.methods.keywords import TReaderXMLKeywords


class TReaderXMLOptions(NetworkOptions):
    """Options of TReaderXML."""

    encoder: Annotated[ReaderOptions | TransformerOptions, Field(discriminator="kind")] = ReaderOptions(
        tokens=TokenOptions(max_tokens=256), vectors=WordVectorOptions(source=TRAIN, width=100), bottleneck=256
    )
    """What reads the texts and their scopes: two attention readers, or a transformer."""
    teacher: bool = True
    """Whether scopes are read; without them the network reads texts alone."""
    scope: TeacherOptions = TeacherOptions()
    """Which labels belong to the scope of a text."""
    dropout: float = Field(0.3, ge=0, lt=1)
    """Dropout of the text vector."""
    loss: Ablation[Literal["bce", "softmax_sigmoid"]] = "bce"
    """Binary cross-entropy of each label, or a softmax over labels followed by a sigmoid of each."""
    labels: LabelTableOptions = LabelTableOptions()
    """How the labels' weights are kept and trained; `bce` only."""
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
        if self.loss == "softmax_sigmoid" and self.teacher and self.scope.votes:
            raise ValueError(
                f"scope.votes must be 0 with loss 'softmax_sigmoid', which ignores them, got {self.scope.votes}"
            )
        return self


@METHODS.register("treaderxml")
class TReaderXML(NetworkMethod):
    """A network that is shown the labels of a text's nearest training texts."""

    options_class = TReaderXMLOptions

    if TYPE_CHECKING:

        def __init__(self, preset: str | None = None, **options: Unpack[TReaderXMLKeywords]) -> None: ...

    def _fit(self, split: Split, texts: TextReadings, run: Run) -> None:
        options: TReaderXMLOptions = self.options
        self.n_labels_, scope = split.labels.n_labels, None
        self.teacher_: Teacher | None = None
        if options.teacher:
            kept, _ = split_rows(len(split), options.training, options.seed)
            teacher_run, search = run.within("teacher"), search_for(options.scope)
            self.teacher_, scope = Teacher.fit(
                split, options.scope, kept, seed=options.seed, run=teacher_run, search=search
            )
        plan = replace(self._plan, encoder=self._encoder)
        self.tagger_ = Tagger.fit(texts, split.labels, plan, self._head, run=run, scope=scope)

    def _top_k(self, texts: TextReadings, k: int, run: Run) -> TopK:
        scope = self.teacher_.scope(texts.table, texts.features, run) if self.teacher_ else None
        return self.tagger_.top_k(texts, k, run, scope=scope)

    def _attribute(self, texts: TextReadings, words: TextWords, label: int, run: Run) -> Attribution:
        if self.teacher_ is None:
            return super()._attribute(texts, words, label, run)
        return self._occlusion(words, label, run, note=READS_SCOPES)

    def _validation_rows(self, n_texts: int) -> NDArray[np.int64]:
        return np.empty(0, np.int64)  # their labels are in the pool that neighbours come from

    @property
    def _encoder(self) -> ReaderOptions | TransformerOptions:
        """Return the encoder's options; without a teacher, it has no part that reads scopes."""
        encoder: ReaderOptions | TransformerOptions = self.options.encoder
        alone = isinstance(encoder, ReaderOptions) and not self.options.teacher
        return encoder.model_copy(update={"scope_words": 0}) if alone else encoder

    def _head(self, width: int) -> Head:
        return self._head_of(width, self.n_labels_)

    def _head_of(self, width: int, n_labels: int) -> Head:
        name, options = (
            ("softmax-sigmoid", None) if self.options.loss == "softmax_sigmoid" else ("dense", self.options.labels)
        )
        return HEADS.get(name).create(width, LabelSpace(n_labels), options)

    def _outline(self, counts: NDArray[np.int64]) -> MakeHead:
        return lambda width: self._head_of(width, len(counts))

    def _save_prepared(self, writer: FolderWriter) -> None:
        if self.teacher_:
            self.teacher_.save(writer)

    def _open_prepared(self, folder: Folder) -> None:
        self.n_labels_ = len(self.scored_labels_)
        self.teacher_ = None
        if self.options.teacher:
            scope = self.options.scope
            self.teacher_ = Teacher.load(folder, scope, self._scored_vocabulary(), search_for(scope))

    @classmethod
    def options_for_fields(cls, fields: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return options that read one field after the other, also where texts are compared."""
        points = cls.options_class.of(options, source=cls.name).scope.points
        compared = {"kind": points.kind, **points.options_for_fields(fields)}
        return {**super().options_for_fields(fields, options), "scope": {"points": compared}}

    def _text_readers(self) -> list[Any]:
        return [*super()._text_readers(), *([self.options.scope.points] if self.options.teacher else [])]

    def exported_network(self) -> Tagger:
        """Return the network; raise if it reads labels of similar training texts beside each text."""
        return super().exported_network() if self.teacher_ is None else super(NetworkMethod, self).exported_network()

    def estimate_resources(self, split: Split, measure: bool = False, threads: int | None = None) -> ResourceEstimate:
        """Return what training on `split` takes; the pool of the teacher is held beside the network."""
        network = super().estimate_resources(split, measure, threads)
        pool = pool_bytes(split, self.options.scope) if self.options.teacher else 0
        items = network.parts if network.gpu_bytes else (*network.parts, ("pool", pool))
        memory, disk = network.memory_bytes + 2 * pool, network.disk_bytes + pool
        return replace(network, memory_bytes=memory, disk_bytes=disk, parts=items)
